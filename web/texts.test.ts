import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseAst } from "vite";
import { expect, test } from "vitest";
import { texts } from "./texts.ts";

interface Node {
  readonly type: string;
  readonly [part: string]: unknown;
}

const sources = globSync("**/*.{ts,tsx}", { cwd: import.meta.dirname })
  .filter((file) => file !== "texts.ts" && !file.includes(".test."))
  .map((file) => ({
    file,
    program: parseAst(readFileSync(path.join(import.meta.dirname, file), "utf8"), { lang: file.endsWith("x") ? "tsx" : "ts" }),
  }));

/** Words that are not texts for readers: Python, DOM and CSS names. */
const silent = [/^False None True and /, /^abs all any bool /, /^\.chart-/, /^12px /, /^Files$/, /^ApiError$/, /^noopener /];

test("English stands in texts.ts and nowhere else", () => {
  const found = sources.flatMap(({ file, program }) => wordsOf(program as unknown as Node).map((words) => `${file}: ${words}`));
  expect(found).toEqual([]);
});

test("every text is said somewhere", () => {
  const said = [...new Set(sources.flatMap(({ program }) => saidBy(program as unknown as Node)))];
  const isSaid = (name: string): boolean => said.some((one) => `${name}.`.startsWith(`${one}.`) || one.startsWith(`${name}.`));
  expect(namesOf(texts).filter((name) => !isSaid(name))).toEqual([]);
});

/** Text between tags, and strings that are more than one word or begin as a sentence does; but for imports, types, class names, and what is only compared. */
function wordsOf(node: Node): string[] {
  if (/^(?:Import|TS|BinaryExpression)/.test(node.type)) return childrenOf(node).filter(isExpression).flatMap(wordsOf);
  if (node.type === "JSXAttribute" && (node["name"] as { name?: string }).name === "className") return [];
  const text = textOf(node);
  const isEnglish =
    text !== null && (node.type === "JSXText" ? /\p{L}/u.test(text) : /\p{L}{2,}\s+\p{L}{2,}|^\s*\p{Lu}\p{Ll}|\p{L} | \p{L}/u.test(text));
  return isEnglish && !silent.some((pattern) => pattern.test(text)) ? [text.trim()] : childrenOf(node).flatMap(wordsOf);
}

/** Of a comparison, what is computed inside it may still hold words; its own literals are names of keys and kinds. */
function isExpression({ type }: Node): boolean {
  return !/^(?:Literal|TemplateLiteral|Import|TS)/.test(type);
}

function textOf(node: Node): string | null {
  if (node.type === "TemplateElement") return (node["value"] as { cooked: string }).cooked;
  const isText = node.type === "JSXText" || node.type === "Literal";
  return isText && typeof node["value"] === "string" ? node["value"] : null;
}

/** `texts.a.b` says what is named so, and everything under it. */
function saidBy(node: Node): string[] {
  const name = memberOf(node);
  return name === null ? childrenOf(node).flatMap(saidBy) : [name];
}

function memberOf({ type, computed, object, property }: Node): string | null {
  if (type !== "MemberExpression" || computed === true) return null;
  const [owner, own] = [object as Node, (property as { name: string }).name];
  if (owner.type === "Identifier") return owner["name"] === "texts" ? own : null;
  const above = memberOf(owner);
  return above === null ? null : `${above}.${own}`;
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((part): part is Node => typeof part === "object" && part !== null && "type" in part);
}

function namesOf(branch: object, above = ""): string[] {
  return Object.entries(branch).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? namesOf(value, `${above}${name}.`) : [`${above}${name}`],
  );
}

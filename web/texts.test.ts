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

/** Strings that look like English but are Python, DOM or CSS names. */
const notEnglish = [
  /^False None True and /,
  /^abs all any bool /,
  /^\.chart-/,
  /^12px /,
  /^Files$/,
  /^ApiError$/,
  /^noopener /,
  /^(?:Categories|Nanoseconds|Label)$/,
];

test("no source except texts.ts contains English texts", () => {
  const found = sources.flatMap(({ file, program }) => findEnglish(program as unknown as Node).map((text) => `${file}: ${text}`));
  expect(found).toEqual([]);
});

test("every text is used", () => {
  const used = [...new Set(sources.flatMap(({ program }) => usedBy(program as unknown as Node)))];
  const isUsed = (name: string): boolean => used.some((one) => `${name}.`.startsWith(`${one}.`) || one.startsWith(`${name}.`));
  expect(namesOf(texts).filter((name) => !isUsed(name))).toEqual([]);
});

/** Finds text between tags, and strings with several words or an initial capital. Ignores imports, types, class names and the literals of comparisons. */
function findEnglish(node: Node): string[] {
  if (/^(?:Import|TS|BinaryExpression)/.test(node.type)) return childrenOf(node).filter(isExpression).flatMap(findEnglish);
  if (node.type === "JSXAttribute" && (node["name"] as { name?: string }).name === "className") return [];
  const text = textOf(node);
  const isEnglish =
    text !== null && (node.type === "JSXText" ? /\p{L}/u.test(text) : /\p{L}{2,}\s+\p{L}{2,}|^\s*\p{Lu}\p{Ll}|\p{L} | \p{L}/u.test(text));
  return isEnglish && !notEnglish.some((pattern) => pattern.test(text)) ? [text.trim()] : childrenOf(node).flatMap(findEnglish);
}

/** The literals of a comparison are names of keys and kinds; the expressions in it can still contain texts. */
function isExpression({ type }: Node): boolean {
  return !/^(?:Literal|TemplateLiteral|Import|TS)/.test(type);
}

function textOf(node: Node): string | null {
  if (node.type === "TemplateElement") return (node["value"] as { cooked: string }).cooked;
  const isText = node.type === "JSXText" || node.type === "Literal";
  return isText && typeof node["value"] === "string" ? node["value"] : null;
}

/** Returns `a.b` for `texts.a.b`, which uses that text or all texts below it. */
function usedBy(node: Node): string[] {
  const name = memberOf(node);
  return name === null ? childrenOf(node).flatMap(usedBy) : [name];
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

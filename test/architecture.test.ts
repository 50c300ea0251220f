import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

/** The level of each module. An import must stay in its module or go to a lower level. */
const levels: Readonly<Record<string, number>> = {
  text: 0,
  "processes.ts": 0,
  errors: 1,
  protocol: 1,
  concurrency: 1,
  "package-version.ts": 1,
  blobs: 2,
  prompts: 2,
  "require-node.ts": 3,
  sandbox: 3,
  artifacts: 3,
  evidence: 3,
  tools: 3,
  history: 3,
  "tools/mcp": 4,
  cells: 4,
  interpreter: 5,
  execute: 5,
  models: 5,
  turn: 6,
  data: 6,
  "create-runtime.ts": 7,
  config: 8,
  "server/mcp": 9,
  "server/http": 10,
  cli: 11,
  "index.ts": 11,
  entries: 11,
};

const root = path.join(import.meta.dirname, "..");
const modules = globSync("src/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));
const sources = modules.filter((file) => !file.includes("/fixtures/"));

describe("architecture", () => {
  it("has a level for every source file", () => {
    expect(sources.filter((file) => moduleOf(file) === null)).toEqual([]);
  });

  it("imports only downwards", () => {
    expect(imports().filter(({ from, to }) => !isAllowed(moduleOf(from), moduleOf(to)))).toEqual([]);
  });

  it("reads the environment in config only", () => {
    expect(sources.filter((file) => moduleOf(file) !== "config" && /process\.env\b/.test(codeOf(file)))).toEqual([]);
  });

  it("has no mutable state at module level", () => {
    // A program that is only started, never imported, may have state at module level.
    const imported = sources.filter((file) => !file.endsWith("-process.ts"));
    expect(imported.filter((file) => /^(?:export )?(?:let|var) /m.test(codeOf(file)))).toEqual([]);
  });

  it("keeps text, errors and protocol free of Node.js, because the page uses them too", () => {
    const shared = sources.filter((file) => ["text", "errors", "protocol"].includes(moduleOf(file) ?? ""));
    expect(shared.filter((file) => /from "node:|import\("node:/.test(codeOf(file)))).toEqual([]);
  });

  it("declares and exports each name in one file only", () => {
    const declaration = /^export (?:declare )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;
    const owners = new Map<string, string[]>();
    for (const file of modules)
      for (const [, name = ""] of codeOf(file).matchAll(declaration)) owners.set(name, [...new Set([...(owners.get(name) ?? []), file])]);
    expect([...owners].filter(([, files]) => files.length > 1)).toEqual([]);
  });

  it("lets the page import the protocol only", () => {
    const pages = globSync("web/**/*.{ts,tsx}", { cwd: root }).filter((file) => !file.includes("node_modules"));
    const imported = pages.flatMap((from) => specifiersOf(from).map((to) => ({ from, to })));
    expect(imported.filter(({ to }) => to.startsWith("src/") && moduleOf(to) !== "protocol")).toEqual([]);
  });
});

function isAllowed(from: string | null, to: string | null): boolean {
  if (from === null || to === null || from === to) return true;
  const [high = 0, low = 0] = [levels[from], levels[to]];
  return high > low;
}

/** Returns the longest module name that matches the path. */
function moduleOf(file: string): string | null {
  const names = Object.keys(levels).filter((name) => file === `src/${name}` || file.startsWith(`src/${name}/`));
  return names.sort((a, b) => b.length - a.length)[0] ?? null;
}

function imports(): { from: string; to: string }[] {
  return sources.flatMap((from) => specifiersOf(from).map((to) => ({ from, to })));
}

/** Returns the static and dynamic relative imports as paths from the root. Prompts may import types from any module. */
function specifiersOf(file: string): string[] {
  const code = moduleOf(file) === "prompts" ? codeOf(file).replaceAll(/^import type .*$/gm, "") : codeOf(file);
  const found = code.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g);
  return [...found].map(([, specifier = ""]) => path.posix.join(path.posix.dirname(file), specifier));
}

/** Returns the code without comments, so that a comment about an import is not taken for one. */
function codeOf(file: string): string {
  return readFileSync(path.join(root, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { entries, root } from "./fixtures/entries.ts";

const exported = /^export (?:\* from "([^"]+)"|(type )?\{([^}]+)\} from "([^"]+)");$/gm;

test("the package exports exactly the names of public-surface.txt", async () => {
  const lines: string[] = [];
  for (const [name, file] of entries) {
    const names = new Map([...listTypes(file), ...(await listValues(file))]);
    lines.push(name, ...[...names].sort(([a], [b]) => (a < b ? -1 : 1)).map(([one, kind]) => `  ${kind.padEnd(9)} ${one}`), "");
  }
  await expect(lines.join("\n")).toMatchFileSnapshot("public-surface.txt");
});

test("no two entries export the same value", async () => {
  const seen = new Map<string, string[]>();
  for (const [name, file] of entries) for (const [value] of await listValues(file)) seen.set(value, [...(seen.get(value) ?? []), name]);
  expect([...seen].filter(([, from]) => from.length > 1)).toEqual([]);
});

test("entries contain only exports, and those for Node.js check its version first", () => {
  for (const file of entries.values()) {
    const rest = read(file)
      .replaceAll(/\/\*[\s\S]*?\*\//g, "")
      .replaceAll(exported, "");
    const first = file === "src/index.ts" ? 'import "./require-node.ts";' : 'import "../require-node.ts";';
    expect([file, rest.trim()]).toEqual([file, file === "src/entries/protocol.ts" ? "" : first]);
  }
});

test("the protocol consists of modules that a browser can load", () => {
  const reached = [...reach("src/entries/protocol.ts")];
  expect(reached.filter((file) => !/^src\/(entries|protocol|errors|text)\//.test(file))).toEqual([]);
});

async function listValues(file: string): Promise<[string, string][]> {
  const values = (await import(path.join(root, file))) as Record<string, unknown>;
  return Object.entries(values).map(([name, value]) => [name, kindOf(value)]);
}

function kindOf(value: unknown): string {
  if (typeof value !== "function") return "const";
  return /^class\b/.test(Function.prototype.toString.call(value)) ? "class" : "function";
}

/** Reads interfaces and types from the source, because they do not exist at run time. */
function listTypes(file: string): [string, string][] {
  return [...read(file).matchAll(exported)].flatMap(([, all, isType, names = "", from]) => {
    const target = path.posix.join(path.posix.dirname(file), (all ?? from)!);
    const declared = new Map(
      [...read(target).matchAll(/^export (?:declare )?(interface|type) (\w+)/gm)].map(([, kind, name]) => [name!, kind!] as const),
    );
    if (all !== undefined) return [...declared];
    const wanted = names.split(",").map((name) => name.trim());
    return wanted
      .filter((name) => isType !== undefined || name.startsWith("type "))
      .map((name): [string, string] => {
        const bare = name.replace(/^type /, "");
        return [bare, declared.get(bare) ?? "type"];
      });
  });
}

function reach(file: string, reached: Set<string> = new Set()): Set<string> {
  if (reached.has(file)) return reached;
  reached.add(file);
  for (const [, specifier = ""] of read(file).matchAll(/ from "(\.[^"]+)"/g))
    reach(path.posix.join(path.posix.dirname(file), specifier), reached);
  return reached;
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

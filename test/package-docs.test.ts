import { execFile } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { entries, root, toSourceImports } from "./fixtures/entries.ts";

/** Pages with programs. Each program is followed by its output. */
const pages = [
  "ai-sdk-app.md",
  "code-interpreter.md",
  "data.md",
  "errors.md",
  "execute.md",
  "isolation.md",
  "library.md",
  "mcp-servers.md",
  "models.md",
  "tools.md",
  "turn.md",
];

describe.each(pages)("docs/%s", (name) => {
  const page = readFileSync(path.join(root, "docs", name), "utf8");
  const programs = [...page.matchAll(/^```ts\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm)];

  test.each(programs.map(([, program, printed], index) => ({ program: program!, printed: printed!, index })))(
    "has a program that prints the output on the page ($index)",
    async ({ program, printed, index }) => {
      const file = path.join(root, "test", `.docs-${name}-${index}-${process.pid}.ts`);
      await writeFile(file, toSourceImports(program, "test"));
      try {
        const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: root, timeout: 110_000 });
        expect(stdout).toBe(printed);
      } finally {
        await rm(file);
      }
    },
    120_000,
  );

  test("has no program without its output", () => {
    expect(programs).toHaveLength(page.split("```ts\n").length - 1);
  });
});

test("no other page has a program", () => {
  const others = readdirSync(path.join(root, "docs")).filter((name) => name.endsWith(".md") && !pages.includes(name));
  expect(others.filter((name) => readFileSync(path.join(root, "docs", name), "utf8").includes("```ts\n"))).toEqual([]);
});

test("docs/library.md names every entry", () => {
  const page = readFileSync(path.join(root, "docs/library.md"), "utf8");
  expect([...page.matchAll(/^\| `(sluice[\w/-]*)` \|/gm)].map(([, name]) => name)).toEqual([...entries.keys()]);
});

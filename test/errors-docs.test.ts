import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { writeDocument } from "../scripts/write-docs.ts";
import { lookUpError, type ErrorCode } from "../src/errors/error-table.ts";

const root = new URL("../", import.meta.url);

test("docs/errors.md contains the tables that scripts/write-docs.ts generates from the error table", async () => {
  expect(readFileSync(new URL("docs/errors.md", root), "utf8")).toBe(await writeDocument("docs/errors.md"));
});

test.each([
  ["UsageError", 2],
  ["NoSandboxError", 3],
])("every code thrown as %s has exit status %i in the table", (name, exit) => {
  const thrown = globSync("src/**/*.ts", { cwd: root })
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((path) => [...readFileSync(new URL(path, root), "utf8").matchAll(new RegExp(`new ${name}\\(\\s*\\{\\s*code:([^,]*),`, "g"))])
    .flatMap(([, code]) => [...(code ?? "").matchAll(/"([A-Z_0-9]+)"/g)].map(([, literal]) => literal as ErrorCode));
  expect(thrown.length).toBeGreaterThan(10);
  expect(thrown.filter((code) => lookUpError(code).exit !== exit)).toEqual([]);
});

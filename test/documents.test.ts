import { existsSync, readFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "./fixtures/entries.ts";

const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n");

describe("documents", () => {
  it.each(pages)("%s links only to files that exist", (page) => {
    const targets = [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target]) => target!);
    expect(targets.filter((target) => !existsSync(path.join(root, path.dirname(page), target)))).toEqual([]);
  });

  it.each(["ARCHITECTURE.md", "CONTRIBUTING.md"])("%s names only files that exist", (page) => {
    const named = [...read(page).matchAll(/`((?:src|test|web|python|scripts|bench|attack|docs)\/[\w./-]+)`/g)].map(([, file]) => file!);
    expect(named.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });

  it("docs/README.md lists every page", () => {
    const index = read("docs/README.md");
    const listed = (page: string): boolean => index.includes(`](${path.relative("docs", page)})`);
    const expected = pages.filter((page) => /^docs\/(?!README|decisions\/)/.test(page));
    expect(expected.filter((page) => !listed(page))).toEqual([]);
  });
});

describe("SECURITY.md", () => {
  const rows = read("SECURITY.md")
    .split(/^\| promise \|.*\n.*\n/m)[1]!
    .split("\n\n")[0]!
    .trim()
    .split("\n");

  it.each(rows)("names a mechanism and tests that exist: %s", (row) => {
    const cells = row.split(" | ");
    const [, mechanism = "", tests = ""] = cells;
    const named = [...tests.matchAll(/`([^`]+)` "([^"]+)"/g)];
    expect([cells.length, named.length > 0]).toEqual([3, true]);
    for (const [, file, title] of named) expect(read(file!)).toContain(title);
    const files = [...mechanism.matchAll(/`((?:src|python)\/[\w./-]+)`/g)].map(([, file]) => file!);
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([]);
  });
});

describe("ARCHITECTURE.md", () => {
  const page = read("ARCHITECTURE.md");
  const flows = [...page.matchAll(/^### (.+)\n\n((?:\d+\. .+\n)+)/gm)].map(([, title, steps]) => ({
    title: title!,
    steps: steps!.trim().split("\n"),
  }));

  it("fits on three screens of 60 lines", () => {
    expect(page.split("\n").length).toBeLessThanOrEqual(180);
  });

  it("shows four flows", () => {
    expect(flows).toHaveLength(4);
  });

  it.each(flows)("$title takes at most twelve stops, each a function in the file that it names", ({ steps }) => {
    expect(steps.length).toBeLessThanOrEqual(12);
    expect(steps.filter((step) => !isStop(step))).toEqual([]);
  });
});

/** A stop reads: 1. `functionName` in `path/of/file`: what it does. */
function isStop(step: string): boolean {
  const [, name, file] = /^\d+\. `([\w#.]+)` in `([\w./-]+)`: /.exec(step) ?? [];
  if (name === undefined || file === undefined || !existsSync(path.join(root, file))) return false;
  const bare = name.split(".").at(-1)!;
  const method = String.raw`^\s+(?:async |static )*${bare}(?:<[^>]*>)?\(`;
  const declared = String.raw`(?:function\*? |const |class |def )${bare}\b`;
  return new RegExp(`${declared}|${method}`, "m").test(read(file));
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..");

interface NpmLock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string; readonly link?: boolean }>>;
}

test("every package in package-lock.json has a hash and names no registry", () => {
  const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as NpmLock;
  const { "": project, ...locked } = packages;
  expect(project).toBeDefined();
  expect(Object.keys(locked).length).toBeGreaterThan(300);
  const unverified = Object.entries(locked).filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ""));
  expect(unverified).toEqual([]);
  expect(Object.values(locked).filter((entry) => "resolved" in entry)).toEqual([]);
});

test.each(globSync("python/*.lock", { cwd: root }))("every requirement in %s has one version and hashes, and no option", (file) => {
  // A requirement continues over lines that end with a backslash.
  const requirements = readFileSync(path.join(root, file), "utf8").replaceAll("\\\n", "").trim().split("\n").slice(1);
  expect(requirements.length).toBeGreaterThan(0);
  const unverified = requirements.filter((line) => !/^[a-z\d-]+==[\w.]+(?: +--hash=sha256:[\da-f]{64})+$/.test(line));
  expect(unverified).toEqual([]);
});

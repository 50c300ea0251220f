import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { systemPackages } from "../src/sandbox/snapshot/debian-packages.ts";

const root = path.join(import.meta.dirname, "..");
const sluice = path.join(root, "bin/sluice");

/** Runs a command as if some programs were not installed, with an empty cache. Also returns the files it left in the cache. */
function runWithout(programs: readonly string[], args: readonly string[]): { status: number | null; stderr: string; left: string[] } {
  const cache = mkdtempSync(path.join(tmpdir(), "sluice-prepare-"));
  const hidden = programs.flatMap((name) => ["--ro-bind", "/dev/null", `/usr/bin/${name}`]);
  const view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", cache, cache, ...hidden];
  try {
    const env = { ...process.env, SLUICE_CACHE: cache };
    const { status, stderr } = spawnSync("bwrap", [...view, sluice, ...args], { encoding: "utf8", env });
    return { status, stderr, left: readdirSync(cache, { recursive: true }).map(String).sort() };
  } finally {
    rmSync(cache, { recursive: true });
  }
}

describe("sluice prepare", () => {
  test("has nothing to do after set-up", () => {
    const { status, stderr } = spawnSync(sluice, ["prepare"], { encoding: "utf8" });
    expect([status, stderr]).toEqual([0, expect.stringMatching(/^… Sandbox: self-test and memory image\n✓ .* is ready.*\n$/)]);
  });

  test.each([[["prepare"]], [["snapshot", "build"]]])("names all missing system packages before it downloads anything (%s)", (args) => {
    const { status, stderr, left } = runWithout(["mmdebstrap", "bwrap"], args);
    expect(status).toBe(3);
    expect(stderr).toContain(
      [
        "sluice: System packages that Sluice needs are not installed (Debian names): bubblewrap, mmdebstrap.",
        "  Run once: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends bubblewrap mmdebstrap'",
        "",
      ].join("\n"),
    );
    expect(left.filter((name) => !name.startsWith("locks"))).toEqual([]);
  });

  test("needs exactly the packages that scripts/setup.mjs installs", () => {
    const script = readFileSync(path.join(root, "scripts/setup.mjs"), "utf8");
    const present = /const present = \{([\s\S]*?)\n {2}\};/.exec(script)![1]!;
    const names = [...present.matchAll(/^ {4}"?([\w-]+)"?: /gm)].map(([, name]) => name!);
    expect(Object.keys(systemPackages)).toEqual(names);
  });
});

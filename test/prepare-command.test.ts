import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
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

  test("installs a given runsc only with its hash, and names both hashes when they differ", () => {
    const cache = mkdtempSync(path.join(tmpdir(), "sluice-prepare-"));
    const prepare = (...args: string[]): { status: number | null; stderr: string } => {
      const { status, stderr } = spawnSync(sluice, ["prepare", ...args], {
        encoding: "utf8",
        env: { ...process.env, SLUICE_CACHE: cache },
      });
      return { status, stderr };
    };
    try {
      expect(prepare("--runsc", "/bin/true")).toEqual({
        status: 2,
        stderr: "sluice: --runsc and --sha512 are required together.\n  Run sluice prepare --help for usage.\n",
      });
      const [actual, given] = [createHash("sha512").update(readFileSync("/bin/true")).digest("hex"), "0".repeat(128)];
      const refused = prepare("--runsc", "/bin/true", "--sha512", given);
      expect(refused.status).toBe(1);
      expect(refused.stderr).toContain(`sluice: /bin/true was not installed: its SHA-512 hash is ${actual}, and --sha512 says ${given}.\n`);
      expect(readdirSync(cache, { recursive: true })).toEqual(["building"]);
    } finally {
      rmSync(cache, { recursive: true });
    }
  });

  test("needs exactly the packages that scripts/setup.mjs installs", () => {
    const script = readFileSync(path.join(root, "scripts/setup.mjs"), "utf8");
    const present = /const present = \{([\s\S]*?)\n {2}\};/.exec(script)![1]!;
    const names = [...present.matchAll(/^ {4}"?([\w-]+)"?: /gm)].map(([, name]) => name!);
    expect(Object.keys(systemPackages)).toEqual(names);
  });
});

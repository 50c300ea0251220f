import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, expect, test } from "vitest";

const setup = path.resolve(import.meta.dirname, "../scripts/setup.mjs");

/** Runs set-up as if some programs were not installed, as root or as another user of a user namespace. */
function setUpWithout(programs: readonly string[], uid: number): { status: number | null; stdout: string; stderr: string } {
  const hidden = programs.flatMap((name) => ["--ro-bind", "/dev/null", `/usr/bin/${name}`]);
  const args = ["--unshare-user", "--uid", String(uid), "--gid", String(uid), "--ro-bind", "/", "/", "--dev", "/dev", ...hidden];
  return spawnSync("bwrap", [...args, process.execPath, setup], { encoding: "utf8" });
}

describe("set-up", () => {
  test("prints the install command and stops when packages are missing and the user is not root", () => {
    expect(setUpWithout(["bwrap", "mmdebstrap"], 1000)).toMatchObject({
      status: 1,
      stdout: "",
      stderr:
        "set-up: System packages are missing. Run this once, then try again:\n\n" +
        "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends bubblewrap mmdebstrap'\n\n",
    });
  });

  test.each([0, 1000])("names the missing packages and stops where apt is missing (user %d)", (uid) => {
    expect(setUpWithout(["mmdebstrap", "apt-get"], uid)).toMatchObject({
      status: 1,
      stdout: "",
      stderr: "set-up: These programs are missing, and there is no apt-get to install them (names of Debian packages): mmdebstrap\n",
    });
  });
});

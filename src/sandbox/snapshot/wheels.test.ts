import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { unreachableReason } from "./wheels.ts";
import { tryProgram } from "./run-program.ts";

describe("unreachableReason", () => {
  it("recognizes an unreachable index in the output of pip", async () => {
    const directory = await mkdtemp(path.join(tmpdir(), "sluice-pip-"));
    const lock = path.join(directory, "lock");
    await writeFile(lock, `numpy==2.4.6 --hash=sha256:${"0".repeat(64)}\n`);
    const { exitCode, stdout, stderr } = await tryProgram({
      program: "python3",
      args: [
        "-m",
        "pip",
        "--isolated",
        "install",
        "--retries",
        "0",
        "--index-url",
        "http://127.0.0.1:9/simple",
        "--target",
        directory,
        "-r",
        lock,
      ],
    });
    await rm(directory, { recursive: true });
    expect(exitCode).not.toBe(0);
    expect(unreachableReason(`${stdout}\n${stderr}`)).toMatch(/^the package index (could not be reached|does not have numpy)/);
  });

  it("returns null for a wrong hash, even after a failed connection", () => {
    const output =
      "WARNING: Retrying after connection broken by 'NewConnectionError'\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.";
    expect(unreachableReason(output)).toBeNull();
  });

  it("names the package that the index does not have", () => {
    expect(unreachableReason("ERROR: No matching distribution found for pyarrow==26.0.1")).toBe(
      "the package index does not have pyarrow==26.0.1",
    );
  });

  it("returns null for a full disk", () => {
    expect(unreachableReason("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")).toBeNull();
  });
});

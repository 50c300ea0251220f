import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { testedDrivers } from "./test-runtime.ts";

const root = path.join(import.meta.dirname, "..");
const pages = ["run.md", "snapshot.md", ...testedDrivers.map((driver) => `drivers/${driver}.md`)];

test.each(pages)(
  "the commands on docs/%s succeed",
  async (name) => {
    const page = readFileSync(path.join(root, "docs", name), "utf8");
    const fences = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
    const directory = await mkdtemp(path.join(tmpdir(), "sluice-docs-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(path.join(directory, "script.py"), "print(6 * 7)\n");
    const env = { ...process.env, PATH: `${path.join(root, "bin")}:${process.env["PATH"]}` };
    expect(fences).toHaveLength(1);
    await promisify(execFile)("sh", ["-e", "-c", fences[0]!], { cwd: directory, env });
  },
  120_000,
);

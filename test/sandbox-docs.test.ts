import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { testedDrivers } from "./test-runtime.ts";

const root = path.join(import.meta.dirname, "..");
const files = {
  "script.py": "print(6 * 7)\n",
  "report.py": 'plt.plot(prices["day"], prices["price"])\nsave_figure("Price on each of two days, rising")\n',
  "prices.csv": "day,price\n1,100\n2,103\n",
  "rows.json": '[{"price": 100}, {"price": 103}]',
};
const pages = ["docs/run.md", "docs/snapshot.md", ...testedDrivers.map((driver) => `docs/drivers/${driver}.md`), "README.md"];

test.each(pages)(
  "the commands on %s succeed",
  async (name) => {
    const page = readFileSync(path.join(root, name), "utf8");
    const commands = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
      .map(([, text = ""]) => text)
      .filter((text) => !text.startsWith("npm "));
    const directory = await mkdtemp(path.join(tmpdir(), "sluice-docs-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    for (const [file, content] of Object.entries(files)) await writeFile(path.join(directory, file), content);
    const PATH = `${path.join(root, "bin")}:${process.env["PATH"]}`;
    const env = { ...process.env, PATH, SLUICE_DATA: path.join(directory, "data") };
    expect(commands).toHaveLength(1);
    await promisify(execFile)("sh", ["-e", "-c", commands[0]!.replaceAll("bin/sluice", "sluice")], { cwd: directory, env });
  },
  240_000,
);

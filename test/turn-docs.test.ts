import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { stopReasons } from "../src/protocol/turn-result.ts";

const root = path.join(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs", "turn.md"), "utf8");
const fence = (language: string): string => new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)![1]!;

test("the page's program prints what the page says", async () => {
  const file = path.join(root, "test", `turn-docs-${process.pid}.ts`);
  await writeFile(file, fence("ts").replace('"sluice"', '"../src/index.ts"').replace('"sluice/ai-sdk"', '"../src/entries/ai-sdk.ts"'));
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    expect(stdout).toBe(fence("text"));
  } finally {
    await rm(file);
  }
});

test("the page has every way in which a turn can end", () => {
  for (const reason of stopReasons) expect(page).toContain(`| \`${reason}\` |`);
});

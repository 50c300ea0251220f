import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { stopReasons } from "../src/protocol/turn-result.ts";

const page = readFileSync(path.join(import.meta.dirname, "../docs/turn.md"), "utf8");

test("docs/turn.md lists every stop reason", () => {
  for (const reason of stopReasons) expect(page).toContain(`| \`${reason}\` |`);
});

import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";

export interface SavedFile {
  readonly name: string;
  readonly bytes: Buffer;
  readonly text: string;
}

/** Presses a button or link and returns the file that the browser saves. */
export async function saveDownload(page: Page, pressed: Locator): Promise<SavedFile> {
  const [download] = await Promise.all([page.waitForEvent("download"), pressed.click()]);
  const bytes = readFileSync(await download.path());
  return { name: download.suggestedFilename(), bytes, text: bytes.toString("utf8") };
}

/** Parses one line of CSV. */
export function toFields(line: string): string[] {
  return [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)]
    .slice(0, -1)
    .map(([, field = ""]) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field));
}

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from "playwright-core";

const root = path.join(import.meta.dirname, "..", "..");
const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((file) => existsSync(file));

/** Timeout for things that happen soon; generous for a busy machine. */
export const soon: { timeout: number } = { timeout: 30_000 };

/** Builds the page and starts Debian's Chromium. */
export async function openBrowser(): Promise<Browser> {
  if (!program) throw new Error("The tests of the page need Debian's Chromium. `npm run setup -- --dev` installs it.");
  const { status, stderr } = spawnSync(process.execPath, ["scripts/build-web.ts"], { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`The page could not be built: ${stderr}`);
  return chromium.launch({ executablePath: program, args: ["--no-sandbox", "--force-color-profile=srgb"] });
}

/** Opens a page that collects script errors and policy violations, which must never happen. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page & { readonly faults: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  return Object.assign(page, { faults });
}

/** Opens the timeline of an ended turn, or one call in it; its content is rendered only then. Repeats a click that had no effect. */
export async function openDetails(details: Locator): Promise<void> {
  const open = async (): Promise<boolean> => {
    const isOpen = (): Promise<boolean> => details.evaluate((element: HTMLDetailsElement) => element.open);
    if (!(await isOpen())) await details.locator(":scope > summary").click();
    return (await isOpen()) && (await details.locator(":scope > :not(summary)").count()) > 0;
  };
  await expect.poll(open, soon).toBe(true);
}

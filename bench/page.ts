import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { loadConfiguration } from "../src/config/load-configuration.ts";
import { processEnvironment } from "../src/config/environment.ts";
import { createLog } from "../src/server/http/create-log.ts";
import { openServer } from "../src/server/http/open-server.ts";
import { countScriptBytes } from "../test/page/count-script-bytes.ts";
import { toBenchRow, type BenchRow } from "./bench-row.ts";
import { median } from "./median.ts";

const ROUNDS = 7;

/** The page in Debian's Chromium, from a server with the bundled sample on loopback: how soon it paints, how much script it is, how long it ever holds its thread while a turn streams. */
export async function run(): Promise<BenchRow[]> {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-bench-page-"));
  const environment = { ...processEnvironment(), SLUICE_DATA: directory, SLUICE_MODEL: "" };
  const loaded = await loadConfiguration({ file: null, workingDirectory: directory, environment });
  const log = createLog({ level: "error", format: "json", write: (line) => void process.stderr.write(line) });
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    await using server = await openServer({ loaded, environment, host: "127.0.0.1", port: 0, workingDirectory: directory, log });
    const page = await browser.newPage();
    const scriptBytes = countScriptBytes(page);
    await page.goto(server.loginLinks[0]?.url ?? server.url);
    await page.locator(".composer").waitFor();
    const paints = await measurePaints(browser, page);
    return [
      toBenchRow({ name: "page: first contentful paint", value: paints.first, unit: "ms", target: 1000 }),
      toBenchRow({ name: "page: largest contentful paint", value: paints.largest, unit: "ms", target: 1000 }),
      toBenchRow({ name: "page: compressed script", value: (await scriptBytes()) / 1e6, unit: "MB", target: 0.5 }),
      toBenchRow({ name: "page: longest task while a turn streams", value: await longestTask(page), unit: "ms", target: 200 }),
    ];
  } finally {
    await browser.close();
    rmSync(directory, { recursive: true });
  }
}

/** Of the first that is seen, and of the welcome itself. Each time with nothing cached: a context of its own, which has the cookie and no file. */
async function measurePaints(browser: Browser, known: Page): Promise<{ first: number; largest: number }> {
  const storageState = await known.context().storageState();
  const [first, largest]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await using context = await browser.newContext({ storageState });
    const page = await context.newPage();
    await page.goto(new URL("/", known.url()).href);
    await page.locator(".samples button").first().waitFor();
    first.push(await lastEntry(page, "paint"));
    largest.push(await lastEntry(page, "largest-contentful-paint"));
  }
  return { first: median(first), largest: median(largest) };
}

/** Of the paints of one kind, the last: of `paint`, the contentful one. */
function lastEntry(page: Page, type: "paint" | "largest-contentful-paint"): Promise<number> {
  return page.evaluate<number>(
    `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime)).observe({ type: "${type}", buffered: true }))`,
  );
}

/** Tasks under 50 ms are not reported by the browser and count as none. */
async function longestTask(page: Page): Promise<number> {
  await page.locator(".samples button").first().waitFor();
  await page.evaluate(
    "globalThis.longest = 0; new PerformanceObserver((list) => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration); }).observe({ type: 'longtask' })",
  );
  await page.locator(".samples button").first().click();
  await page.locator("[data-status=ended] .artifact").first().waitFor({ timeout: 300_000 });
  await page.waitForTimeout(500);
  return page.evaluate<number>("globalThis.longest");
}

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

/** Measures the page in Chromium with the bundled sample: time to paint, size of the scripts, and the longest task while a turn streams. */
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
    await page.goto(server.createLoginLink());
    await page.getByRole("button", { name: "Log in as" }).click();
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

/** Measures the first and the largest contentful paint, each time in a new context with the cookie and an empty cache. */
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

/** Returns the time of the last entry of a type. For `paint`, that is the contentful one. */
function lastEntry(page: Page, type: "paint" | "largest-contentful-paint"): Promise<number> {
  return page.evaluate<number>(
    `new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime)).observe({ type: "${type}", buffered: true }))`,
  );
}

/** Browsers do not report tasks under 50 ms; they count as 0. */
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

import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TurnDocument } from "../../src/protocol/http-turns.ts";
import { openBrowser, openDetails, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";

const minutes = 60_000;
const looks: [string, BrowserContextOptions][] = [
  ["dark", { colorScheme: "dark" }],
  ["390 pixels wide", { viewport: { width: 390, height: 844 }, hasTouch: true }],
];

/** The same conversation on a small screen and in the dark. */
describe("looks of the page", () => {
  let browser: Browser;
  let server: PageServer;
  let turn: TurnDocument;

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer()]);
    turn = await server.ask();
  }, 5 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  it.each(looks)(
    "fits the screen and has no accessibility faults in any state (%s)",
    async (_how, options) => {
      const page = await server.visit(browser, options);
      const isSmall = options.viewport !== undefined;
      const faults: unknown[] = [];
      /** Checks that the page does not scroll sideways and that axe finds nothing serious. */
      const look = async (state: string, part?: string): Promise<void> => {
        const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (width > 0) faults.push([state, `${width} pixels too wide`]);
        faults.push(...(await findBarriers(page, part)).map((barrier) => [state, barrier]));
      };
      await page.locator(".samples button").first().waitFor();
      await look("welcome");
      if (isSmall) {
        await page.getByRole("button", { name: "Conversations" }).click();
        await look("menu");
      }
      await page
        .locator(".conversations")
        .getByRole("button", { name: /^Delete “/ })
        .click();
      await look("deleting", ".sidebar");
      await page.getByRole("button", { name: "Keep" }).click();
      await page.locator(".conversations a").click();
      await page.locator(".artifact .chart-marks path").first().waitFor();
      await openDetails(page.locator(".timeline"));
      for (const call of await page.locator(".call > details").all()) await openDetails(call);
      await look("conversation");
      await page.getByRole("button", { name: "Open Chart 1" }).click();
      const panel = page.locator(".panel");
      await panel.locator(".chart-marks path").first().waitFor();
      await panel.locator(".chart-plot").focus();
      await page.keyboard.press("End");
      await panel.locator(".chart-tooltip").waitFor();
      await look("chart", ".panel");
      for (const [tab, part] of [
        ["Numbers", ".data-table"],
        ["Code", ".editor"],
        ["Data", ".aliases button"],
      ] as const) {
        await page.getByRole("tab", { name: tab }).click();
        await panel.locator(part).first().waitFor();
        await look(tab, ".panel");
      }
      await panel.getByRole("button", { name: /^get_reserves_1 / }).click();
      await panel.getByText("1–100 of 28,878").waitFor({ timeout: minutes });
      await look("data", ".panel");
      await panel.getByRole("button", { name: "Close", exact: true }).click();
      await page.getByRole("button", { name: "Open Figure 1" }).click();
      await panel.locator("img").waitFor();
      await look("figure", ".panel");
      expect(faults).toEqual([]);
      if (options.colorScheme === "dark") expect(await brightness(page)).toBeLessThan(60);
      expect(page.faults).toEqual([]);
      await page.context().close();
    },
    8 * minutes,
  );

  it("keeps the chosen theme, whatever the system's is", async () => {
    const page = await server.visit(browser, { colorScheme: "light" });
    await page.goto(`${server.url}/c/${turn.conversationId}`);
    const chart = page.locator(".answer .chart-marks path").first();
    const colour = (): Promise<string> => chart.evaluate((path) => getComputedStyle(path).fill);
    await chart.waitFor();
    const light = await colour();
    expect(await brightness(page)).toBeGreaterThan(200);
    await page.getByLabel("Colours").selectOption("Dark");
    await expect.poll(() => brightness(page), soon).toBeLessThan(60);
    expect(await colour()).not.toBe(light);
    await page.reload();
    await chart.waitFor();
    expect(await brightness(page)).toBeLessThan(60);
    await page.getByLabel("Colours").selectOption("Same as the system");
    await expect.poll(() => brightness(page), soon).toBeGreaterThan(200);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => brightness(page), soon).toBeLessThan(60);
    await page.getByLabel("Colours").selectOption("Light");
    await expect.poll(() => brightness(page), soon).toBeGreaterThan(200);
    expect(page.faults).toEqual([]);
    await page.context().close();
  });
});

/** Brightness of the background, 0 to 255. */
function brightness(page: Page): Promise<number> {
  return page.evaluate(() => {
    const [red = 0, green = 0, blue = 0] = getComputedStyle(document.body).backgroundColor.match(/\d+/g)?.map(Number) ?? [];
    return (red + green + blue) / 3;
  });
}

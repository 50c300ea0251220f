import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelScript } from "../../src/models/model-script.ts";
import { openBrowser, openDetails, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { sampleCharts } from "./sample-charts.ts";
import { endlessCode, endlessScript, failedChartScript, galleryScript, sparseModelScript } from "./scripts.ts";

const minutes = 60_000;

/** The page against a real server on the default driver, with every kind of ending of a turn. */
describe("turns on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer(endlessScript)]);
    page = await server.visit(browser);
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  async function ask(question: string): Promise<void> {
    await page.getByRole("textbox", { name: "Your question" }).fill(question);
    await page.keyboard.press("Enter");
  }
  async function begin(script: ModelScript, question: string): Promise<void> {
    await server.restart(script);
    await page.goto(server.url);
    await page.locator(".composer").waitFor();
    await ask(question);
  }
  const ended = (): Promise<void> => page.locator("[data-status=ended]").waitFor({ timeout: 2 * minutes });
  const calls = (): Locator => page.locator(".call");
  /** The last number that the endless cell has printed so far. */
  const lastTick = async (): Promise<number> => lastOf((await page.locator(".output").allInnerTexts()).join(""));

  it(
    "shows a running turn live: plan, tool call, code, output, and each picture as soon as it exists",
    async () => {
      await ask("What is the mean price?");
      await expect.poll(lastTick, { timeout: 2 * minutes }).toBeGreaterThanOrEqual(0);
      const seen = await lastTick();
      expect(await page.locator("[data-status]").getAttribute("data-status")).toBe("running");
      const picture = page.locator(".thumb img");
      await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), soon).toBeGreaterThan(100);
      expect(await picture.getAttribute("alt")).toBe("A line of daily prices over three hundred days");
      expect(await page.locator(".plan").innerText()).toBe("Plan\nmean price\na chart was requested · all days");
      expect((await calls().nth(0).innerText()).split("\n")).toEqual([
        "get_prices",
        "notes",
        "300 rows",
        expect.stringMatching(/^\d+ KB$/),
        "get_prices_1",
        expect.stringMatching(/^\d[\d.]* m?s$/),
      ]);
      const lines = endlessCode.trimEnd().split("\n");
      expect(await calls().nth(2).locator(".code-line").allTextContents()).toEqual(lines.map((line) => `${line}\n`));
      expect(
        await calls()
          .nth(2)
          .locator(".code-line")
          .evaluateAll((all) =>
            all.map((line) => [(line as HTMLElement).dataset["line"], getComputedStyle(line, "::before").content !== "none"]),
          ),
      ).toEqual(lines.map((_line, index) => [String(index + 1), true]));
      expect(await calls().nth(2).locator(".code-keyword").allTextContents()).toEqual(["import", "for", "in", "True"]);
      const colours = await calls()
        .nth(2)
        .locator("[class^=code-]:not(.code-line)")
        .evaluateAll((tokens) => new Set(tokens.map((token) => getComputedStyle(token).color)).size);
      expect(colours).toBeGreaterThan(2);
      await expect.poll(lastTick, soon).toBeGreaterThan(seen);
      expect(await findBarriers(page)).toEqual([]);
    },
    5 * minutes,
  );

  it("shows no motion when the reader prefers none", async () => {
    const moving = (): Promise<number> =>
      page.evaluate(() => document.getAnimations().filter((one) => one.effect?.getComputedTiming().iterations === Infinity).length);
    expect(await page.locator(".mark-running").count()).toBeGreaterThan(0);
    expect(await moving()).toBe(0);
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await expect.poll(moving, soon).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await expect.poll(moving, soon).toBe(0);
  });

  it(
    "continues to show a running turn after a reload, and stops it during a cell",
    async () => {
      const [address, seen] = [page.url(), await lastTick()];
      expect(address).toMatch(/\/c\/c_[0-9a-f]{32}$/);
      await page.reload();
      await page.getByRole("status").getByText("Working").waitFor();
      await expect.poll(lastTick, soon).toBeGreaterThan(seen);
      const later = await lastTick();
      await expect.poll(lastTick, soon).toBeGreaterThan(later);
      const output = await page.locator(".output").innerText();
      expect(output.match(/tick \d+/g)).toEqual(Array.from({ length: lastOf(output) + 1 }, (_none, n) => `tick ${n}`));
      expect([page.url(), await calls().count(), await page.locator(".thumb img").count()]).toEqual([address, 3, 1]);

      await page.getByRole("button", { name: "Stop" }).click();
      await ended();
      expect(await calls().count()).toBe(0);
      expect(await page.locator(".timeline").innerText()).toMatch(/^Steps taken\n3 steps, 3 tool calls, /);
      expect(await page.locator(".turn-foot").innerText()).toContain("Stopped");
      expect(await page.locator(".notices").innerText()).toContain("Low confidence.");
      expect(page.faults).toEqual([]);
    },
    5 * minutes,
  );

  it(
    "draws each type of chart inline, below an answer in Markdown",
    async () => {
      await begin(galleryScript, "Every type of chart, please");
      await ended();
      await expect.poll(() => page.locator(".answer .chart .chart-plot svg").count(), soon).toBe(sampleCharts.length);
      expect(await page.locator(".answer .chart-title").allInnerTexts()).toEqual(sampleCharts.map(({ title }) => title));
      for (const [index] of sampleCharts.entries())
        expect(await page.locator(".answer .chart-marks").nth(index).locator("path").count()).toBeGreaterThan(0);
      const answer = page.locator(".answer");
      expect(await answer.getByRole("heading", { name: "Every type" }).count()).toBe(1);
      expect(await answer.locator("p em, p strong, p code").allInnerTexts()).toEqual(["plain", "stacked", "gaps"]);
      expect(await answer.locator("> ul > li").allInnerTexts()).toEqual(["lines", expect.stringMatching(/^bars\n/)]);
      expect(await answer.locator("ol > li").allInnerTexts()).toEqual(["beside each other", "on each other"]);
      expect(await answer.locator("table tr").allInnerTexts()).toEqual(["kind\taxis", "line\ttime", "histogram\tnumber"]);
      expect(await findBarriers(page)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );

  it("zooms every type of chart in the panel", async () => {
    const panel = page.locator(".panel");
    const labels = (): Promise<string> => panel.locator(".recharts-xAxis-tick-labels").first().innerHTML();
    for (const [index, { name }] of sampleCharts.entries()) {
      await page.getByRole("button", { name: `Open Chart ${index + 1}`, exact: true }).click();
      await panel
        .locator(".badge")
        .getByText(`Chart ${index + 1}`, { exact: true })
        .waitFor();
      const before = await labels();
      await panel.getByRole("button", { name: "Zoom in" }).click();
      await expect.poll(async () => [name, (await labels()) !== before], soon).toEqual([name, true]);
      expect(await panel.locator("output").innerText()).not.toBe("100 %");
    }
    await page.keyboard.press("Escape");
    expect(page.faults).toEqual([]);
  });

  it("zooms a chart along its axis, moves what is in view, and fits it again", async () => {
    const panel = page.locator(".panel");
    const at = sampleCharts.findIndex(({ name }) => name === "stacked-bar");
    await page.getByRole("button", { name: `Open Chart ${at + 1}`, exact: true }).click();
    const labels = (): Promise<string[]> => panel.locator(".recharts-xAxis-tick-labels text").allTextContents();
    const months = sampleCharts[at]?.data.map(({ month }) => String(month)) ?? [];
    await expect.poll(labels, soon).toContain(months[0]);
    const all = await labels();
    await panel.getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(() => panel.locator("output").innerText(), soon).toBe("200 %");
    await expect.poll(labels, soon).not.toContain(months[0]);
    const middle = await labels();
    expect(middle.filter((label) => !months.slice(3, 9).includes(label))).toEqual([]);
    const box = await panel.locator("[data-hover]").boundingBox();
    if (!box) throw new Error("nothing was drawn");
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2, { steps: 10 });
    await page.mouse.up();
    await expect.poll(labels, soon).toContain(months[0]); // the earlier months are now in view
    await panel.getByRole("button", { name: "Fit" }).click();
    await expect.poll(labels, soon).toEqual(all);
  });

  it(
    "shows that the chart failed, and why, without opening anything",
    async () => {
      await begin(failedChartScript, "Plot the mean price");
      await ended();
      expect(await page.locator("[data-gap=chart_not_rendered]").innerText()).toMatch(/^The chart was not drawn\. /);
      const notices = await page.locator(".notice-major").allInnerTexts();
      expect(notices).toEqual(["Low confidence.", expect.stringContaining("no such column: prize")]);
      expect(await page.locator(".notice-major").first().isVisible()).toBe(true);
      await openDetails(page.locator(".timeline"));
      expect(await page.locator(".call-reason").last().innerText()).toContain("no such column: prize");
      expect(await findBarriers(page)).toEqual([]);
    },
    4 * minutes,
  );

  it(
    "shows that a line has a gap, and copies the answer unchanged",
    async () => {
      await begin(sparseModelScript, "Plot the prices");
      await ended();
      expect(await page.locator("[data-gap=low_coverage]").innerText()).toMatch(/^Low coverage\. .*10 of 100/);
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.getByRole("button", { name: "Copy answer" }).click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^See Figure 1\./);
      expect(await findBarriers(page)).toEqual([]);
    },
    4 * minutes,
  );
});

function lastOf(output: string): number {
  return Number(/tick (\d+)\s*$/.exec(output)?.[1] ?? -1);
}

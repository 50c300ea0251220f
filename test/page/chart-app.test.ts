import type { Browser, FrameLocator, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser, openPage, soon } from "./browser.ts";
import { openInHost, showInHost } from "./chart-host.ts";
import { hasReference, shareOfDifference } from "./compare-pictures.ts";
import { findBarriers } from "./find-barriers.ts";
import { largeCharts, sampleCharts, type SampleChart } from "./sample-charts.ts";

/** Share of the drawn pixels. */
const tolerance = 0.0005;

describe("the chart app in an MCP host", () => {
  let browser: Browser;
  let page: Page & { readonly faults: string[] };
  let app: FrameLocator;

  beforeAll(async () => {
    browser = await openBrowser();
    page = await openPage(browser, { viewport: { width: 760, height: 900 } });
    app = page.frameLocator("iframe");
  }, 240_000);
  afterAll(() => browser?.close());

  /** The drawings of all samples in one result. Text depends on the machine's fonts and is hidden; marks do not. */
  async function drawings(theme: "light" | "dark"): Promise<[name: string, drawing: Locator][]> {
    await showInHost(page, { charts: sampleCharts.map((chart) => toContent(chart)) }, theme);
    const all = app.locator(".chart-plot svg.recharts-surface");
    await expect.poll(() => all.count(), soon).toBe(sampleCharts.length);
    await app
      .locator(".chart-plot svg")
      .first()
      .evaluate((svg) => {
        for (const text of svg.ownerDocument.querySelectorAll<SVGTextElement>(".chart-plot svg text")) text.style.visibility = "hidden";
      });
    return sampleCharts.map(({ name }, index) => [name, all.nth(index)]);
  }

  it.each(["light", "dark"] as const)(
    "draws each type of chart as its reference shows it, in %s",
    async (theme) => {
      const missing = sampleCharts.filter(({ name }) => !hasReference(`${name}-${theme}`));
      for (const [name, drawing] of await drawings(theme)) {
        const share = async (): Promise<number> => shareOfDifference(page, `${name}-${theme}`, await drawing.screenshot());
        await expect.poll(share, { ...soon, message: name }).toBeLessThanOrEqual(tolerance); // the part just scrolled to may not be painted yet
      }
      expect(missing).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    180_000,
  );

  it("detects a missing line, point, error bar or reference", async () => {
    const unseen: string[] = [];
    for (const [name, drawing] of (await drawings("light")).filter(([name]) => ["line", "bar", "composed"].includes(name))) {
      const parts = drawing.locator(".chart-marks > *, .chart-reference-line, .chart-reference-area");
      for (const [index, part] of (await parts.all()).entries()) {
        await part.evaluate((shape: SVGElement) => (shape.style.visibility = "hidden"));
        const share = await shareOfDifference(page, `${name}-light`, await drawing.screenshot());
        if (share <= tolerance) unseen.push(`${name} without part ${index}: ${share}`);
        await part.evaluate((shape: SVGElement) => (shape.style.visibility = ""));
      }
    }
    expect(unseen).toEqual([]);
  }, 180_000);

  it("speaks the host's protocol and loads nothing", async () => {
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await showInHost(page, toContent(named("line")));
    const heard = await page.evaluate(() => (globalThis as unknown as { heard: string[] }).heard);
    expect(heard.slice(0, 2)).toEqual(["ui/initialize", "ui/notifications/initialized"]);
    expect(heard).toContain("ui/notifications/size-changed");
    expect(requests.filter((url) => !url.startsWith("about:"))).toEqual([]);
  });

  it("shows the exact values under the pointer", async () => {
    await showInHost(page, toContent(named("composed")));
    const box = await app.locator("[data-hover]").boundingBox();
    if (!box) throw new Error("nothing was drawn");
    // The first of 40 days, then the day in the middle of a gap.
    await page.mouse.move(box.x + 3, box.y + 60);
    await expect
      .poll(() => app.locator(".chart-tooltip").allInnerTexts())
      .toEqual(["2024-01-01\nPrice\t$44 ± $1.5\nVolume\t9,000\nFair value\t$40\nOur trades\t$43"]);
    await page.mouse.move(box.x + (box.width * 24.5) / 40, box.y + 60);
    await expect.poll(() => app.locator(".chart-tooltip strong").innerText(), soon).toBe("2024-01-25");
    expect(await app.locator(".chart-tooltip tr").first().innerText()).toBe("Price\tno value");
  });

  it("announces values that are read by keyboard", async () => {
    await showInHost(page, toContent(named("bar")));
    const plot = app.locator(".chart-plot");
    await plot.focus();
    await page.keyboard.press("End");
    await expect.poll(() => app.getByRole("status").innerText(), soon).toBe("2025 Q2\nReported\t$1,170 ± $35\nEstimate\t$1,175");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => app.getByRole("status").innerText(), soon).toBe("2025 Q1\nReported\t$1,100 ± $35\nEstimate\t$1,100");
    expect(await app.getByRole("status").getAttribute("aria-live")).toBe("polite");
    expect(await plot.getAttribute("aria-label")).toBe(
      "Bar chart: Revenue by quarter. 6 rows of Reported, Estimate. Use the arrow keys to read the values one by one. The table lists all of them.",
    );
    await page.keyboard.press("Escape");
    await expect.poll(() => app.getByRole("status").count(), soon).toBe(0);
  });

  it("hides and shows a series by its legend, and rescales", async () => {
    await showInHost(page, toContent(named("line")));
    const marks = app.locator(".chart-marks > g");
    await expect.poll(() => marks.count(), soon).toBe(2);
    await app.getByRole("button", { name: "Meridian" }).click();
    await expect.poll(() => marks.count(), soon).toBe(1);
    expect(await app.getByRole("button", { name: "Meridian" }).getAttribute("aria-pressed")).toBe("false");
    expect(await app.locator(".recharts-yAxis-tick-labels text").last().textContent()).toBe("60K");
    await app.getByRole("button", { name: "Harbour" }).click();
    await expect
      .poll(() => app.locator(".chart-note").innerText(), soon)
      .toBe("Every series is hidden. Press one in the legend to show it.");
    await app.getByRole("button", { name: "Meridian" }).click();
    await expect.poll(() => marks.count(), soon).toBe(1);
  });

  it("zooms with the brush, by keyboard and by the pointer", async () => {
    const candles = named("candlestick");
    await showInHost(page, toContent(candles));
    const start = app.getByRole("slider", { name: "Start of the range" });
    const end = app.getByRole("slider", { name: "End of the range" });
    const inView = async (): Promise<(string | null)[]> => [
      await start.getAttribute("aria-valuetext"),
      await end.getAttribute("aria-valuetext"),
    ];
    const labels = (): Promise<string[]> => app.locator(".recharts-xAxis-tick-labels text").allTextContents();
    const day = (n: number): string => String(candles.data[n]?.["day"]);
    const before = await labels();
    await start.focus();
    for (let times = 0; times < 45; times += 1) await page.keyboard.press("ArrowRight");
    await expect.poll(inView, soon).toEqual([day(45), day(89)]);
    await expect.poll(labels, soon).not.toEqual(before);
    const box = await app.locator(".chart-brush-window").boundingBox();
    if (!box) throw new Error("there is no brush");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x - box.width, box.y + box.height / 2, { steps: 8 });
    await page.mouse.up();
    await expect.poll(inView, soon).toEqual([day(0), day(44)]);
  });

  it("lists every number in a sortable table", async () => {
    await showInHost(page, toContent(named("bar")));
    await app.getByRole("button", { name: "Table" }).click();
    const column = (place: number): Promise<string[]> => app.locator(`.data-table tbody td:nth-child(${place})`).allInnerTexts();
    expect(await app.locator(".data-table thead th").allInnerTexts()).toEqual(["quarter", "Reported", "error", "Estimate"]);
    expect(await column(2)).toEqual(["820", "890", "960", "–", "1,100", "1,170"]);
    await app.getByRole("button", { name: "Reported" }).last().click();
    await app.getByRole("button", { name: "Reported" }).last().click();
    expect(await column(2)).toEqual(["1,170", "1,100", "960", "890", "820", "–"]);
    expect(await app.locator("th").nth(1).getAttribute("aria-sort")).toBe("descending");
  });

  it("draws five thousand points of every type as a handful of shapes, so that pointing at them stays smooth", async () => {
    expect(new Set(largeCharts.map(({ spec }) => spec.type))).toEqual(new Set(sampleCharts.map(({ spec }) => spec.type)));
    for (const chart of largeCharts) {
      expect(chart.data).toHaveLength(5000);
      await showInHost(page, toContent(chart));
      const shapes = await app.locator(".chart-plot svg.recharts-surface *").count();
      expect([chart.name, shapes < 400 ? "few" : shapes]).toEqual([chart.name, "few"]);
      const box = await app.locator("[data-hover]").boundingBox();
      if (!box) throw new Error("nothing was drawn");
      await page.mouse.move(box.x + 1, box.y + box.height / 2);
      await page.mouse.move(box.x + box.width - 1, box.y + box.height - 1, { steps: 30 });
      if (chart.spec.type !== "scatter") await expect.poll(() => app.locator(".chart-tooltip").innerText(), soon).toMatch(lastOf(chart));
    }
    expect(page.faults).toEqual([]);
  }, 180_000);

  it("shows markup in charts as text", async () => {
    const evil = `<img src=x onerror="parent.postMessage('owned','*')">`;
    await showInHost(page, {
      kind: "chart",
      title: evil,
      spec: {
        type: "bar",
        xKey: "x",
        series: [{ key: evil, label: evil }],
        legend: true,
        xAxis: { label: evil },
        referenceLines: [{ axis: "x", value: evil, label: evil }],
      },
      data: [{ x: evil, [evil]: 1 }],
    });
    expect(await app.locator(".chart-title").innerText()).toBe(evil);
    expect(await app.locator("img").count()).toBe(0);
    await app.getByRole("button", { name: "Table" }).click();
    expect(await app.locator(".data-table td").first().innerText()).toBe(evil);
    expect(await app.locator("img").count()).toBe(0);
  });

  it("says what is wrong with a chart that cannot be drawn", async () => {
    await showInHost(page, {
      artifacts: [{ kind: "chart", spec: { type: "line", xKey: "x", series: [{ key: "y" }] }, data: [{ x: 1, z: 2 }] }],
    });
    expect(await app.getByRole("alert").innerText()).toBe(
      "This chart cannot be drawn\nseries[0].key: y is not in the data; the columns are x, z",
    );
  });

  it("takes no space for a result without a chart", async () => {
    await openInHost(page, { charts: [] });
    const heard = (): Promise<string[]> => page.evaluate(() => (globalThis as unknown as { heard: string[] }).heard);
    await expect.poll(heard, soon).toContain("ui/notifications/initialized");
    await expect.poll(() => app.locator("#root").evaluate((root) => root.innerHTML), soon).toBe("");
    expect(await app.locator("#root").evaluate((root) => root.getBoundingClientRect().height)).toBe(0);
  });

  it.each(["light", "dark"] as const)("has no serious finding of axe, in %s", async (theme) => {
    await showInHost(page, { artifacts: sampleCharts.map((chart) => toContent(chart)) }, theme);
    await app.getByRole("button", { name: "Table" }).nth(1).click();
    expect(await findBarriers(page, "iframe")).toEqual([]);
  });
});

function named(name: string): SampleChart {
  const chart = sampleCharts.find((one) => one.name === name);
  if (!chart) throw new Error(`no sample ${name}`);
  return chart;
}

/** The pointer reads the exact last rows at the right end. */
function lastOf({ spec }: SampleChart): RegExp {
  return spec.type === "heatmap" ? /99/ : /4,?99\d/;
}

function toContent({ title, spec, data }: SampleChart): unknown {
  return { kind: "chart", title, spec, data };
}

import { createHash } from "node:crypto";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChartArtifact } from "../../src/protocol/artifact.ts";
import type { ArtifactReference } from "../../src/protocol/artifact-reference.ts";
import type { Figure } from "../../src/protocol/figure.ts";
import type { TableCell } from "../../src/protocol/http-tables.ts";
import type { TurnDocument } from "../../src/protocol/http-turns.ts";
import { openBrowser, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { readSampleDataset, type SampleDataset } from "./read-sample-dataset.ts";
import { saveDownload, toFields, type SavedFile } from "./save-download.ts";

const minutes = 60_000;

/** The panel with one figure and one chart of the bundled sample, checked against the turn's dataset. */
describe("the docked panel", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };
  let turn: TurnDocument;
  let monthly: SampleDataset["monthly"];
  let totals: SampleDataset["totals"];

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer()]);
    turn = await server.ask();
    ({ monthly, totals } = await readSampleDataset(server, turn));
    page = await server.visit(browser);
    await page.goto(`${server.url}/c/${turn.conversationId}`);
  }, 6 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const panel = (): Locator => page.locator(".panel");
  const tab = (name: string): Promise<void> => page.getByRole("tab", { name }).click();
  const save = (kind: string): Promise<SavedFile> =>
    saveDownload(page, panel().getByRole("button", { name: `Download as ${kind}`, exact: true }));
  const cells = async (column: number): Promise<string[]> => panel().locator(`.data-table tbody td:nth-child(${column})`).allInnerTexts();
  const numbers = async (column: number): Promise<number[]> => (await cells(column)).map((text) => Number(text.replaceAll(",", "")));
  async function open(name: string): Promise<void> {
    if ((await panel().count()) > 0) await panel().getByRole("button", { name: "Close", exact: true }).click();
    await page.getByRole("button", { name: `Open ${name}`, exact: true }).click();
    await panel().waitFor();
  }
  const artifact = (kind: "image" | "chart"): ArtifactReference => turn.result!.artifacts.find((one) => one.kind === kind)!;

  it("shows the numbers of a chart, which are those of the dataset, and sorts them", async () => {
    await open("Chart 1");
    await tab("Numbers");
    await panel().locator(".data-table").waitFor();
    expect(await cells(1)).toEqual(monthly.map(({ month }) => month));
    expect(await numbers(2)).toEqual(monthly.map(({ net_flow }) => net_flow));
    await panel().getByRole("button", { name: "Net flow" }).click();
    const rising = monthly.map(({ net_flow }) => net_flow).toSorted((a, b) => a - b);
    expect(await numbers(2)).toEqual(rising);
    await panel().getByRole("button", { name: "Net flow" }).click();
    expect(await numbers(2)).toEqual(rising.toReversed());
    expect(await findBarriers(page)).toEqual([]);
  });

  it("shows the numbers of a figure, which are those of the dataset, and sorts them", async () => {
    await open("Figure 1");
    await tab("Numbers");
    await panel().getByText("100 of 731 rows").waitFor();
    const drawn = totals.map(([, total]) => total / 1e6);
    expect((await cells(1)).map((day) => day.slice(0, 10))).toEqual(totals.slice(0, 100).map(([day]) => day));
    expect(roughly(await numbers(2))).toEqual(roughly(drawn.slice(0, 100)));
    await panel().locator(".data-table th button").nth(1).click();
    expect(roughly(await numbers(2))).toEqual(roughly(drawn.toSorted((a, b) => a - b).slice(0, 100)));
    await panel().getByRole("button", { name: "Show more rows" }).click();
    await panel().getByText("600 of 731 rows").waitFor();
    // The second panel of the figure: a bar for each month, in thousands.
    await panel().getByRole("combobox", { name: "Numbers" }).selectOption({ index: 1 });
    await panel().getByText("24 of 24 rows").waitFor();
    expect(roughly(await numbers(2))).toEqual(roughly(monthly.map(({ net_flow }) => net_flow / 1e3)));
    expect(await findBarriers(page)).toEqual([]);
  });

  it(
    "downloads a figure as PNG, CSV, Parquet and JSON, with the stored picture and every number",
    async () => {
      const { title = "", contentHash, figureData } = artifact("image");
      const figure = await server.call<Figure>("GET", new URL(figureData!.url).pathname);
      const name = title.toLowerCase().replaceAll(" ", "-");
      const png = await save("PNG");
      expect([png.name, createHash("sha256").update(png.bytes).digest("hex")]).toEqual([`${name}.png`, contentHash]);
      const csv = await save("CSV");
      const [head, first, ...more] = csv.text.trimEnd().split("\r\n");
      expect([csv.name, head?.split(",")[0], more.length + 1]).toEqual([`${name}.csv`, "series", totals.length + monthly.length]);
      expect(first).toContain(String(figure?.axes[0]?.series[0]?.y[0]));
      const json = await save("JSON");
      expect([json.name, JSON.parse(json.text)]).toEqual([`${name}.json`, { title, alt: artifact("image").alt, figure }]);
      const parquet = await save("Parquet");
      expect([parquet.name, ...ends(parquet)]).toEqual([`${name}.parquet`, "PAR1", "PAR1"]);
      expect(await panel().getByRole("button", { name: "Download as SVG" }).count()).toBe(0);
      // Read the page's file with the sandbox's own reader.
      const read = await readBack("figure.parquet", parquet.bytes);
      expect([read.total, read.columns]).toEqual([totals.length + monthly.length, head?.split(",")]);
      expect(read.rows.map((row) => row.map((cell) => (cell === null ? "" : String(cell))))).toEqual(
        [first, ...more].slice(0, 100).map((line) => toFields(line ?? "")),
      );
    },
    3 * minutes,
  );

  it(
    "downloads a chart as PNG, CSV, Parquet and JSON, each with the numbers of the dataset",
    async () => {
      await open("Chart 1");
      await panel().locator(".chart-marks path").first().waitFor();
      const rows = monthly.map(({ month, net_flow }) => [month, net_flow]);
      const png = await save("PNG");
      expect([png.name, png.bytes.subarray(0, 8).toString("latin1")]).toEqual(["net-flow-of-reserves-by-month.png", "\x89PNG\r\n\x1a\n"]);
      expect(png.bytes.readUInt32BE(16)).toBeGreaterThan(600);
      const csv = await save("CSV");
      expect(csv.text).toBe(["Month,Net flow", ...rows.map((row) => row.join(","))].map((line) => `${line}\r\n`).join(""));
      const json = await save("JSON");
      expect((JSON.parse(json.text) as ChartArtifact).data.map(({ month, net_flow }) => [month, net_flow])).toEqual(rows);
      const parquet = await save("Parquet");
      expect(ends(parquet)).toEqual(["PAR1", "PAR1"]);
      expect(await readBack("chart.parquet", parquet.bytes)).toMatchObject({ columns: ["Month", "Net flow"], rows, total: rows.length });
    },
    3 * minutes,
  );

  it.each(["light", "dark"] as const)("downloads a chart as a standalone SVG, from the %s page", async (theme) => {
    await page.emulateMedia({ colorScheme: theme });
    const { name, text } = await save("SVG");
    await page.emulateMedia({ colorScheme: null });
    expect(name).toBe("net-flow-of-reserves-by-month.svg");
    expect(text).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(text).not.toMatch(/var\(|light-dark|currentcolor|url\((?!["']?#)|href=|class=|style=|<script|<foreignObject/i);
    const ground = /<rect [^>]*fill="([^"]+)"/.exec(text)?.[1];
    expect(ground).toBe(theme === "light" ? "rgb(255, 255, 255)" : "rgb(26, 29, 32)");
    // A browser with only the file: it is well-formed and draws the title, a bar per month and the axes.
    const alone = await browser.newPage();
    const requests: string[] = [];
    alone.on("request", (request) => requests.push(request.url()));
    await alone.goto(`data:image/svg+xml;base64,${Buffer.from(text).toString("base64")}`);
    expect(requests.filter((url) => !url.startsWith("data:"))).toEqual([]);
    expect(await alone.locator("parsererror").count()).toBe(0);
    expect(await alone.locator("text").allTextContents()).toEqual(
      expect.arrayContaining(["Net flow of reserves by month", "Month", "BTC"]),
    );
    const shapes = await alone
      .locator("path")
      .evaluateAll((paths) => paths.map((path) => path.getAttribute("d")?.match(/M/g)?.length ?? 0));
    expect(shapes).toContain(monthly.length);
    await alone.close();
  });

  it("zooms a picture", async () => {
    await open("Figure 1");
    const image = panel().locator(".zoom-view img");
    const width = async (): Promise<number> => (await image.boundingBox())?.width ?? 0;
    const fitting = await width();
    await panel().getByRole("button", { name: "Zoom in" }).click();
    expect(await panel().locator("output").innerText()).toBe("150 %");
    await expect.poll(width, soon).toBeCloseTo(fitting * 1.5, 0);
    await panel().getByRole("button", { name: "Zoom out" }).click();
    await expect.poll(width, soon).toBeCloseTo(fitting, 0);
  });

  it(
    "runs the code of a figure with edits, and shows the new outcome beside the old one",
    async () => {
      await tab("Code");
      const editor = page.getByRole("textbox", { name: "Code of the cell" });
      const code = await editor.inputValue();
      expect(code).toBe(turn.cells[0]?.code);
      await editor.fill(
        code.replace("Net flow by month, without coverage", "Edited by hand").replace("set_result({", "set_result({'edited': 41 + 1,"),
      );
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await panel()
        .getByText(/^After · Ran in /)
        .waitFor({ timeout: 2 * minutes });
      const pictures = panel().locator(".comparison img");
      const sources = await pictures.evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src));
      expect(sources).toEqual([`${server.url}/artifacts/${artifact("image").contentHash}.png`, expect.stringMatching(/\.png$/)]);
      expect(sources[0]).not.toBe(sources[1]);
      const boxes = await Promise.all([pictures.nth(0).boundingBox(), pictures.nth(1).boundingBox()]);
      expect(boxes[0]?.y).toBe(boxes[1]?.y);
      expect(await panel().locator("[data-result]").innerText()).toMatch(/"edited": 42,[^]*"net_flow": -772\d\d/);
      expect(await findBarriers(page)).toEqual([]);
      // The answer does not change.
      expect(await page.locator(".answer img").evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src))).toEqual([
        sources[0],
      ]);

      await editor.fill("print('before')\nraise ValueError('by hand')\n");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await panel().getByText("ValueError: by hand").first().waitFor({ timeout: minutes });
    },
    5 * minutes,
  );

  it(
    "names the data behind a figure with its rows, opens it in the data browser, and returns",
    async () => {
      await tab("Data");
      const inputs = panel().locator(".aliases li");
      expect(await inputs.locator("code").allInnerTexts()).toEqual(expect.arrayContaining(["get_reserves_1", "get_prices_1", "result_1"]));
      for (const [alias, rows] of [
        ["get_reserves_1", "28,878 rows"],
        ["get_prices_1", "731 rows"],
        ["result_1", "24 rows"],
      ] as const)
        expect(await inputs.filter({ hasText: alias }).innerText()).toContain(rows);
      await inputs.filter({ hasText: "get_prices_1" }).getByRole("button").click();
      await panel().getByText("1–100 of 731").waitFor(soon);
      const csv = await saveDownload(page, panel().getByRole("link", { name: "CSV" }));
      expect([csv.text.split("\n")[0]?.trim(), csv.text.trimEnd().split("\n").length]).toEqual(["date,open,high,low,close,volume", 732]);
      const parquet = await saveDownload(page, panel().getByRole("link", { name: "Parquet" }));
      expect(ends(parquet)).toEqual(["PAR1", "PAR1"]);
      const json = await saveDownload(page, panel().getByRole("link", { name: "JSON" }));
      expect((JSON.parse(json.text) as { rows: unknown[] }).rows).toHaveLength(731);
      await panel().getByRole("button", { name: "Back" }).click();
      await panel().getByRole("tab", { name: "View" }).waitFor();
      expect(page.faults).toEqual([]);
    },
    3 * minutes,
  );

  async function readBack(name: string, bytes: Buffer): Promise<{ columns: string[]; rows: TableCell[][]; total: number }> {
    expect(await server.upload(turn.conversationId, name, bytes)).toBe(201);
    return server.call("GET", `/api/conversations/${turn.conversationId}/aliases/${name.split(".")[0]}/rows?limit=100`);
  }
});

function ends({ bytes }: SavedFile): string[] {
  return [bytes.subarray(0, 4).toString("latin1"), bytes.subarray(-4).toString("latin1")];
}

/** Compares sums that were added in a different order. */
function roughly(values: readonly number[]): string[] {
  return values.map((value) => value.toFixed(6));
}

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChartArtifact } from "../../src/protocol/artifact.ts";
import type { TurnDocument } from "../../src/protocol/http-turns.ts";
import { makeDataFiles, regions } from "../fixtures/make-data-files.ts";
import { openBrowser, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";

const minutes = 60_000;

/** A person with a fresh machine, no key and the bundled sample: from the printed link to the numbers. */
describe("a conversation on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };
  let turn: TurnDocument;
  let chart: ChartArtifact;

  beforeAll(async () => {
    browser = await openBrowser();
    server = await openPageServer();
    page = await server.visit(browser);
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const panel = (): ReturnType<Page["locator"]> => page.locator(".panel");
  async function save(button: string): Promise<{ name: string; bytes: Buffer }> {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  }

  it("comes in by the one-time link, which leaves the address bar at once", async () => {
    expect(page.url()).toBe(`${server.url}/`);
    expect(await page.evaluate(() => document.cookie)).toBe("");
    expect(await findBarriers(page)).toEqual([]);
  });

  it(
    "answers the sample question with figure, chart and coverage in sight",
    async () => {
      await page.getByRole("button", { name: /Reserves of all venues/ }).click();
      await page.locator("[data-status=ended]").waitFor({ timeout: 3 * minutes });
      const { turns } = await server.call<{ turns: { turnId: string }[] }>("GET", "/api/turns");
      turn = await server.call("GET", `/api/turns/${turns[0]?.turnId}`);
      chart = turn.result?.artifacts.find((one) => one.kind === "chart") as ChartArtifact;
      expect(await page.locator(".timeline").innerText()).toMatch(/^What was done\n4 steps, 4 tool calls, /);
      expect(await page.locator(".answer").innerText()).toContain("Total reserves of the venues fell by 106,201 BTC in two years");
      expect(await page.locator("[data-gap=coverage_events]").innerText()).toContain("Harbour first listed on 2025-03-03 with 35,000");
      await expect
        .poll(() => page.locator(".answer img").evaluate((image: HTMLImageElement) => image.naturalWidth), soon)
        .toBeGreaterThan(500);
      expect(await page.locator(".artifact-head .badge").allInnerTexts()).toEqual(["Figure 1", "Chart 1"]);
      expect(await page.locator(".answer .chart-marks path").count()).toBe(1);
      expect(await page.locator(".conversations .conversation-title").allInnerTexts()).toEqual([
        expect.stringContaining("How did the total reserves"),
      ]);
      expect(await findBarriers(page)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    5 * minutes,
  );

  it("has in the panel the numbers that the dataset has, sortable", async () => {
    await page.getByRole("button", { name: "Open Chart 1" }).click();
    await page.getByRole("tab", { name: "Numbers" }).click();
    const cells = await panel().locator(".data-table tbody tr").first().locator("td").allInnerTexts();
    const [first] = chart.data;
    expect(cells[0]).toBe(first?.["month"]);
    expect(Number(cells[1]?.replaceAll(",", ""))).toBe(first?.["net_flow"]);
    await panel().getByRole("button", { name: "Net flow" }).click();
    const least = Math.min(...chart.data.map((row) => Number(row["net_flow"])));
    expect(Number((await panel().locator(".data-table tbody tr").first().locator("td").nth(1).innerText()).replaceAll(",", ""))).toBe(
      least,
    );
    expect(await findBarriers(page)).toEqual([]);
  });

  it(
    "gives the chart as PNG, SVG, CSV, Parquet and JSON, each with its numbers",
    async () => {
      await page.getByRole("tab", { name: "View" }).click();
      await panel().locator(".chart-marks path").first().waitFor();
      const png = await save("Download as PNG");
      expect([png.name, png.bytes.subarray(0, 8).toString("latin1")]).toEqual(["net-flow-of-reserves-by-month.png", "\x89PNG\r\n\x1a\n"]);
      expect(png.bytes.readUInt32BE(16)).toBeGreaterThan(600);
      const svg = (await save("Download as SVG")).bytes.toString();
      expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
      expect(svg).toContain("Net flow of reserves by month");
      expect(svg).not.toContain("var(--");
      const csv = await save("Download as CSV");
      const [head, second] = csv.bytes.toString().split("\r\n");
      expect([head, second]).toEqual(["Month,Net flow", `${chart.data[0]?.["month"]},${chart.data[0]?.["net_flow"]}`]);
      const json = JSON.parse((await save("Download as JSON")).bytes.toString()) as ChartArtifact;
      expect(json.data).toEqual(chart.data);

      // The Parquet file goes back in, and the sandbox's own reader tells what is in it.
      const parquet = await save("Download as Parquet");
      const conversation = page.url().split("/").at(-1) ?? "";
      await page
        .locator("input[type=file]")
        .setInputFiles({ name: "flow.parquet", mimeType: "application/octet-stream", buffer: parquet.bytes });
      await page.locator(".chips").getByText("flow", { exact: true }).waitFor();
      const rows = await server.call<{ columns: string[]; rows: unknown[][] }>(
        "GET",
        `/api/conversations/${conversation}/aliases/flow/rows?limit=100`,
      );
      expect(rows.columns).toEqual(["Month", "Net flow"]);
      expect(rows.rows).toEqual(chart.data.map((row) => [row["month"], row["net_flow"]]));
    },
    minutes * 3,
  );

  it(
    "runs the code of a figure again with edits, the new beside the old",
    async () => {
      await page.getByRole("button", { name: "Close", exact: true }).click();
      await page.getByRole("button", { name: "Open Figure 1" }).click();
      await page.getByRole("button", { name: "Zoom in" }).click();
      expect(await panel().locator("output").innerText()).toBe("150 %");
      const figure = await save("Download as PNG");
      expect(figure.bytes.subarray(1, 4).toString()).toBe("PNG");
      await page.getByRole("tab", { name: "Code" }).click();
      const editor = page.getByRole("textbox", { name: "Code of the cell" });
      const code = await editor.inputValue();
      expect(code).toBe(turn.cells[0]?.code);
      await editor.fill(code.replace("Net flow by month, without coverage", "Edited by hand"));
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await panel()
        .getByText(/^After · Ran in /)
        .waitFor({ timeout: 2 * minutes });
      const pictures = await panel()
        .locator(".comparison img")
        .evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src));
      expect(pictures).toHaveLength(2);
      expect(pictures[0]).not.toBe(pictures[1]);
      expect(await panel().locator("[data-result]").innerText()).toMatch(/"net_flow": -772\d\d/);
      expect(await findBarriers(page)).toEqual([]);

      await editor.fill("print('before')\nraise ValueError('by hand')\n");
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await panel().getByText("ValueError: by hand").first().waitFor({ timeout: minutes });
    },
    5 * minutes,
  );

  it(
    "browses the data behind it: schema, pages, filter, search, order",
    async () => {
      await page.getByRole("tab", { name: "Data" }).click();
      expect(await panel().locator(".aliases code").allInnerTexts()).toEqual(["get_reserves_1", "get_prices_1", "result_1"]);
      expect(await panel().locator(".aliases button").first().innerText()).toContain("28,878 rows");
      await panel().locator(".aliases button").first().click();
      const status = panel().locator(".pager [role=status]");
      await expect.poll(() => status.innerText(), soon).toBe("1–100 of 28,878");
      expect(await panel().locator(".schema tbody th").allInnerTexts()).toEqual(["timestamp", "venue", "reserve"]);
      expect(await panel().locator(".schema tbody tr").nth(2).locator("td").nth(1).innerText()).toBe("0.9 %");
      await page.getByRole("button", { name: "Next" }).click();
      await expect.poll(() => status.innerText(), soon).toBe("101–200 of 28,878");
      await page.getByRole("searchbox", { name: "Search in all columns" }).fill("harbour");
      await expect.poll(() => status.innerText(), soon).toMatch(/^1–100 of \d+ that fit \(of 28,878\)$/);
      await page.getByLabel("Column to filter by").selectOption("reserve");
      await page.getByLabel("Comparison").selectOption("gt");
      await page.getByLabel("Value", { exact: true }).fill("35400");
      await page.getByRole("button", { name: "Add filter" }).click();
      await panel().getByRole("button", { name: "Remove the filter reserve > 35400" }).waitFor();
      await panel().locator(".rows-table th").getByRole("button", { name: "reserve" }).click();
      await expect.poll(() => panel().locator(".rows-table th").nth(2).getAttribute("aria-sort"), soon).toBe("ascending");
      await expect
        .poll(
          async () => Number((await panel().locator(".rows-table tbody tr").first().locator("td").nth(2).innerText()).replaceAll(",", "")),
          soon,
        )
        .toBeGreaterThan(35_400);
      expect(await findBarriers(page)).toEqual([]);
      await page.keyboard.press("Escape");
      expect(await panel().count()).toBe(0);
    },
    3 * minutes,
  );

  it(
    "takes a file that is dropped on it, and says why it does not take another",
    async () => {
      const drop = (name: string, text: string): Promise<void> =>
        page.evaluate(
          ([name, text]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], name));
            for (const type of ["dragover", "drop"])
              document.body.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
          },
          [name, text] as const,
        );
      await drop("sales.csv", "region,amount\nnorth,12.5\nsouth,\n");
      await page.locator(".chips").getByText("sales", { exact: true }).waitFor();
      await expect.poll(() => page.locator(".chips .chip", { hasText: "sales" }).innerText(), soon).toMatch(/^sales/);
      await page.locator(".chips .chip", { hasText: "sales" }).click();
      await expect.poll(() => panel().locator(".rows-table tbody tr").allInnerTexts(), soon).toEqual(["north\t12.5", "south\t–"]);
      await page.keyboard.press("Escape");
      await drop("program.exe", "MZ");
      await page.getByText("program.exe was not taken.").waitFor();
    },
    2 * minutes,
  );

  it(
    "takes every kind of data file",
    async () => {
      const conversation = page.url().split("/").at(-1) ?? "";
      for (const [name, content] of Object.entries(await makeDataFiles())) {
        await page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) });
        const [alias = ""] = name.split(".");
        await page.locator(".chips").getByText(alias, { exact: true }).waitFor();
        const { columns, rows } = await server.call("GET", `/api/conversations/${conversation}/aliases/${alias}/rows?limit=10`);
        expect([name, columns, rows]).toEqual([name, ["region", "amount"], regions]);
      }
    },
    4 * minutes,
  );

  it(
    "pages through, searches and filters a million rows that stay on the server",
    async () => {
      const lines = Array.from({ length: 1_000_000 }, (_none, n) => `${n},v${n % 37},${(n * 7919) % 10_007}`);
      const stored = await server.upload("c_million", "million.csv", `id,venue,amount\n${lines.join("\n")}\n`);
      expect(stored).toBe(201);
      await page.goto(`${server.url}/c/c_million`);
      await page.locator(".chips .chip").click();
      const status = panel().locator(".pager [role=status]");
      await expect.poll(() => status.innerText(), { timeout: minutes }).toBe("1–100 of 1,000,000");
      expect(await panel().locator(".rows-table tbody tr").count()).toBe(100);
      await page.getByRole("searchbox", { name: "Search in all columns" }).fill("999999");
      await expect.poll(() => status.innerText(), { timeout: minutes }).toBe("1–1 of 1 that fit (of 1,000,000)");
      expect(await panel().locator(".rows-table tbody tr").allInnerTexts()).toEqual([
        `999,999\tv${999_999 % 37}\t${((999_999 * 7919) % 10_007).toLocaleString("en-US")}`,
      ]);
    },
    4 * minutes,
  );

  it(
    "works by keyboard alone",
    async () => {
      await page.goto(server.url);
      await page.locator(".composer").waitFor();
      await page.keyboard.press("Tab");
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the conversation");
      await page.keyboard.press("Enter");
      const reach = async (name: RegExp, key = "Tab"): Promise<void> => {
        for (let steps = 0; steps < 60; steps += 1) {
          await page.keyboard.press(key);
          const focus = await page.evaluate(() => {
            const element = document.activeElement;
            return element?.tagName === "BUTTON" ? `${element.getAttribute("aria-label") ?? ""} ${element.textContent}` : "";
          });
          if (name.test(focus)) return;
        }
        throw new Error(`the keyboard does not reach ${name}`);
      };
      await reach(/Reserves of all venues/);
      await page.keyboard.press("Enter");
      await page.locator("[data-status=ended]").waitFor({ timeout: 3 * minutes });
      await reach(/Open Figure 1/);
      await page.keyboard.press("Enter");
      await panel().waitFor();
      await reach(/^ *View$/);
      await page.keyboard.press("ArrowRight");
      await panel().locator(".data-table").waitFor();
      await page.keyboard.press("Escape");
      expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Open Figure 1");
    },
    5 * minutes,
  );

  it(
    "asks again with edits: what came after gives way",
    async () => {
      await page.locator(".question").getByRole("button", { name: "Edit" }).click();
      await page.getByRole("textbox", { name: "Edit the question" }).fill("And since 2025?");
      await page.locator(".question").getByRole("button", { name: "Ask again" }).click();
      await page.locator("[data-status=running]").waitFor();
      await page.locator("[data-status=ended]").waitFor({ timeout: 3 * minutes });
      expect(await page.locator(".question p").allInnerTexts()).toEqual(["And since 2025?"]);
      await page.reload();
      await page.locator("[data-status=ended]").waitFor();
      expect(await page.locator(".question p").allInnerTexts()).toEqual(["And since 2025?"]);
    },
    5 * minutes,
  );

  it(
    "finds its conversations after a restart of the server, by words too",
    async () => {
      await server.restart();
      await page.goto(server.url);
      const titles = page.locator(".conversations .conversation-title");
      await expect.poll(() => titles.count(), soon).toBe(3);
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("since 2025");
      await expect.poll(() => titles.count(), soon).toBe(1);
      await page.locator(".conversations a").click();
      await expect.poll(() => page.locator(".artifact").count(), soon).toBe(2);
      await expect
        .poll(() => page.locator(".answer img").evaluate((image: HTMLImageElement) => image.naturalWidth), soon)
        .toBeGreaterThan(500);
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("nothing like it");
      await page.getByText("Nothing was found.").waitFor();
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("");
      await expect.poll(() => titles.count(), soon).toBe(3);
      await page
        .locator(".conversations li.is-current")
        .getByRole("button", { name: /^Delete “/ })
        .click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await expect.poll(() => titles.count(), soon).toBe(2);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );

  it.each([
    ["dark", { colorScheme: "dark" as const }],
    ["390 pixels wide", { viewport: { width: 390, height: 844 }, hasTouch: true }],
  ])(
    "is as good %s",
    async (_how, options) => {
      const other = await server.visit(browser, options);
      try {
        if (options.viewport) await other.getByRole("button", { name: "Conversations" }).click();
        await other.locator(".conversations a", { hasText: "How did" }).first().click();
        await other.locator(".artifact").first().waitFor();
        expect(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
        expect(await findBarriers(other)).toEqual([]);
        await other.getByRole("button", { name: "Open Chart 1" }).click();
        await other.locator(".panel .chart-marks path").first().waitFor();
        expect(await findBarriers(other)).toEqual([]);
        expect(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
        await other.getByRole("tab", { name: "Code" }).click();
        await other.locator(".panel .editor").waitFor();
        expect(await findBarriers(other)).toEqual([]);
        expect(other.faults).toEqual([]);
      } finally {
        await other.context().close();
      }
    },
    3 * minutes,
  );

  it(
    "shows the operator what runs, live, and the self-test",
    async () => {
      await page.goto(`${server.url}/ops`);
      await page.locator(".tiles").waitFor();
      expect(await page.locator(".tile dt").allInnerTexts()).toEqual([
        "Sandboxes",
        "Warm in the pool",
        "Turns",
        "Cells",
        "Artifacts",
        "Up since",
      ]);
      await expect.poll(() => page.locator(".card .chart-plot svg").count(), soon).toBeGreaterThanOrEqual(5);
      const updated = await page.locator("header [role=status]").innerText();
      await expect.poll(() => page.locator("header [role=status]").innerText(), soon).not.toBe(updated);
      await page.getByRole("button", { name: "Run the self-test" }).click();
      await page
        .locator(".checks li")
        .first()
        .waitFor({ timeout: 2 * minutes });
      expect(await page.locator(".card summary strong").first().innerText()).toBe("gvisor");
      expect(await findBarriers(page)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );

  it(
    "loads less than 500 KB of compressed script, no inline script, and nothing from elsewhere",
    async () => {
      const context = await browser.newContext();
      const other = await context.newPage();
      const { url } = await server.call<{ url: string }>("POST", "/api/login-links");
      const session = await other.context().newCDPSession(other);
      await session.send("Network.enable");
      const scripts: string[] = [];
      const origins = new Set<string>();
      other.on("response", (response) => {
        origins.add(new URL(response.url()).origin);
        if (response.request().resourceType() === "script") scripts.push(response.url());
      });
      await other.goto(url);
      await other.locator(".composer").waitFor();
      const { gzipSync } = await import("node:zlib");
      const sizes = await Promise.all(
        scripts.map(async (script) => gzipSync(Buffer.from(await (await other.request.get(script)).body())).length),
      );
      expect(sizes.length).toBeGreaterThan(0);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(500_000);
      expect([...origins]).toEqual([server.url]);
      const policy = (await other.request.get(`${server.url}/`)).headers()["content-security-policy"] ?? "";
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toContain("unsafe");
      await context.close();
    },
    2 * minutes,
  );
});

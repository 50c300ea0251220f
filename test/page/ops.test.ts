import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Operations } from "../../src/protocol/http-operations.ts";
import { openBrowser, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { failedChartScript } from "./scripts.ts";

const minutes = 60_000;

/** The operator's page, after a turn in which cells failed. */
describe("operations", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer(failedChartScript)]);
    await server.ask("Plot the mean price");
    page = await server.visit(browser);
    await page.getByRole("link", { name: "Operations" }).click();
    await page.locator(".tiles").waitFor();
  }, 5 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const now = (): Promise<Operations> => server.call("GET", "/api/ops");
  const tile = (name: string): Locator =>
    page
      .locator(".tile")
      .filter({ has: page.getByText(name, { exact: true }) })
      .locator("dd");
  const card = (title: string): Locator => page.locator(".card").filter({ has: page.locator(".chart-title, h2").getByText(title) });
  /** Reads the numbers of a plot from its table. */
  async function rowsOf(title: string): Promise<string[][]> {
    await card(title).getByRole("button", { name: "Table" }).click();
    const rows = await card(title)
      .locator(".data-table tbody tr")
      .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText)));
    await card(title).getByRole("button", { name: "Table" }).click();
    return rows;
  }

  it("shows sandboxes, pool, turns, cells and artifacts as numbers", async () => {
    expect(page.url()).toBe(`${server.url}/ops`);
    expect(await page.locator(".tile dt").allInnerTexts()).toEqual([
      "Sandboxes",
      "Warm in the pool",
      "Turns",
      "Cells",
      "Artifacts",
      "Up since",
    ]);
    const { sandboxes, pool, turns, cells } = await now();
    expect(await tile("Sandboxes").innerText()).toMatch(new RegExp(`^\\d+ / ${sandboxes.places} alive, \\d+ waiting$`));
    expect(await tile("Warm in the pool").innerText()).toMatch(new RegExp(`^\\d+ / ${pool.size}$`));
    expect([turns.total, await tile("Turns").innerText()]).toEqual([1, "1 0 running, 0 queued"]);
    expect(await tile("Cells").innerText()).toBe(String(cells.total));
    expect(await tile("Up since").innerText()).toMatch(/gvisor/);
  });

  it("plots starts, failures by cause, durations and memory, with the numbers of the server", async () => {
    for (const title of ["Sandboxes", "Turns", "Server memory", "Sandbox starts", "Cells by status", "Failures by cause"])
      await card(title).first().locator(".chart-plot svg").first().waitFor();
    // The page polls every few seconds, so it may be one answer behind.
    const agree = async (title: string, told: (operations: Operations) => (string | number)[][]): Promise<void> => {
      const isSame = async (): Promise<boolean> => (await rowsOf(title)).join("\n") === told(await now()).join("\n");
      await expect.poll(isSame, { ...soon, message: title }).toBe(true);
    };
    await agree("Sandbox starts", ({ starts }) => [
      ["From the pool", starts.pool],
      ["Restored", starts.restored],
      ["Forked", starts.forked],
      ["Cold", starts.cold],
    ]);
    await agree("Cells by status", ({ cells }) => Object.entries(cells.byStatus));
    await agree("Failures by cause", ({ failures }) => failures.map(({ cause, count }) => [cause, count]));
    const { starts, failures, latencies } = await now();
    expect(starts.pool + starts.restored + starts.cold).toBeGreaterThan(0);
    expect(failures.length).toBeGreaterThan(0);
    for (const [title, { count, buckets }] of [
      ["Cell durations", latencies.cellRun],
      ["Sandbox start durations", latencies.cellStart],
      ["Turn durations", latencies.turn],
    ] as const) {
      const distribution = page.locator(".card").filter({ has: page.locator(".chart-title").getByText(title, { exact: true }) });
      expect(await distribution.locator("p.soft").innerText()).toMatch(new RegExp(`^p50 .+ · p95 .+ · ${count} measured$`));
      await distribution.getByRole("button", { name: "Table" }).click();
      const counts = await distribution.locator(".data-table tbody td:nth-child(2)").allInnerTexts();
      expect(counts).toHaveLength(buckets.length);
      expect(counts.reduce((sum, text) => sum + Number(text), 0)).toBe(count);
      await distribution.getByRole("button", { name: "Table" }).click();
    }
    await page.locator(".chart-title").getByText("HTTP request durations", { exact: true }).waitFor();
  });

  it("shows the latest probes", async () => {
    const { probes } = await now();
    expect(probes.length).toBeGreaterThan(0);
    expect(probes.length).toBeLessThanOrEqual(200);
    const shown = page.getByRole("log", { name: "Latest probes" });
    for (const { line } of probes.slice(-3)) await expect.poll(() => shown.innerText(), soon).toContain(line);
  });

  it(
    "updates its numbers without a reload",
    async () => {
      const status = page.locator("header [role=status]");
      const updated = await status.innerText();
      await server.ask("Plot it again");
      await expect.poll(() => tile("Turns").innerText(), soon).toMatch(/^2 /);
      expect(await status.innerText()).not.toBe(updated);
      expect((await rowsOf("Server memory")).length).toBeGreaterThan(1);
    },
    3 * minutes,
  );

  it(
    "runs the self-test of every driver and shows each check",
    async () => {
      await page.getByRole("button", { name: "Run the self-test" }).click();
      await page
        .locator(".checks li")
        .first()
        .waitFor({ timeout: 3 * minutes });
      const { selfTest } = await now();
      expect(await page.locator(".card summary strong").allInnerTexts()).toEqual(selfTest?.drivers.map(({ name }) => name));
      expect(selfTest?.drivers[0]).toMatchObject({ name: "gvisor", usable: true });
      const [first] = await page.locator(".checks").all();
      expect(await first?.getByRole("img", { name: "done" }).count()).toBe(selfTest?.drivers[0]?.checks.length);
      expect(await findBarriers(page)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );

  it.each([
    ["dark", { colorScheme: "dark" as const }],
    ["390 pixels wide", { viewport: { width: 390, height: 844 }, hasTouch: true }],
  ])("fits the screen and has no accessibility faults (%s)", async (_how, options) => {
    const other = await server.visit(browser, options);
    await other.goto(`${server.url}/ops`);
    await other.locator(".ops-grid .chart-plot svg").first().waitFor();
    expect(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(await findBarriers(other)).toEqual([]);
    expect(other.faults).toEqual([]);
    await other.context().close();
  });
});

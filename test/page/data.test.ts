import type { Browser, Locator, Page, Response } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Alias } from "../../src/protocol/http-tables.ts";
import { makeDataFiles, regions } from "../fixtures/make-data-files.ts";
import { openBrowser, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";

const minutes = 60_000;
const million = 1_000_000;
const amountOf = (n: number): number | null => (n % 10 === 0 ? null : (n * 7919) % 10_007);

describe("data on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer()]);
    page = await server.visit(browser);
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const panel = (): Locator => page.locator(".panel");
  const chip = (alias: string): Locator =>
    page.getByRole("list", { name: "Data in this conversation" }).locator("button", { hasText: alias });
  const drop = (name: string, content: string | Uint8Array): Promise<void> =>
    page.evaluate(
      ([name, base64]) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([bytes], name));
        for (const type of ["dragover", "drop"])
          document.body.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }));
      },
      [name, Buffer.from(content).toString("base64")] as const,
    );

  it(
    "turns every kind of dropped data file into an alias with rows",
    async () => {
      const files = await makeDataFiles();
      expect(
        Object.keys(files)
          .map((name) => name.slice(name.indexOf(".")))
          .toSorted(),
      ).toEqual([".csv", ".json", ".jsonl", ".parquet", ".tsv", ".xlsx"]);
      for (const [name, content] of Object.entries(files)) {
        const [alias = ""] = name.split(".");
        await drop(name, content);
        await expect.poll(() => chip(alias).allInnerTexts(), { timeout: minutes }).toEqual([expect.stringMatching(/\b2 rows$/)]);
        await chip(alias).click();
        await expect
          .poll(() => panel().locator(".rows-table tbody tr").allInnerTexts(), soon)
          .toEqual(regions.map((row) => row.join("\t")));
        await page.keyboard.press("Escape");
      }
      const { conversations } = await server.call<{ conversations: { id: string }[] }>("GET", "/api/conversations");
      const { aliases } = await server.call<{ aliases: Alias[] }>("GET", `/api/conversations/${conversations[0]?.id}/aliases`);
      expect(aliases.map(({ alias, source, rows, columns }) => [alias, source, rows, columns])).toEqual(
        Object.keys(files).map((name) => [name.split(".")[0], "data", 2, ["region", "amount"]]),
      );
    },
    5 * minutes,
  );

  it("explains why it refuses a file", async () => {
    await drop("program.exe", "MZ");
    const refusal = page.getByRole("alert").filter({ hasText: "program.exe was not added." });
    expect(await refusal.innerText()).toContain(".csv, .tsv, .json, .jsonl, .parquet, .xlsx");
    await drop("broken.parquet", "this is no parquet");
    await page.getByRole("alert").filter({ hasText: "broken.parquet was not added." }).waitFor({ timeout: minutes });
    expect(await findBarriers(page)).toEqual([]);
  });

  it(
    "browses a million rows that stay on the server: schema, pages, filter, search, order",
    async () => {
      const lines = Array.from({ length: million }, (_none, n) => `${n},v${n % 37},${amountOf(n) ?? ""}`);
      const csv = `id,venue,amount\n${lines.join("\n")}\n`;
      expect(await server.upload("c_million", "million.csv", csv)).toBe(201);
      const sizes: Promise<number>[] = [];
      page.on("response", (response) => {
        if (response.url().includes("/aliases/million/")) sizes.push(sizeOf(response));
      });
      await page.goto(`${server.url}/c/c_million`);
      await expect.poll(() => chip("million").allInnerTexts(), { timeout: minutes }).toEqual([expect.stringMatching(/\b1,000,000 rows$/)]);
      await chip("million").click();
      const status = panel().locator(".pager [role=status]");
      const shown = { timeout: minutes };
      await expect.poll(() => status.innerText(), shown).toBe("1–100 of 1,000,000");
      expect(await panel().locator(".rows-table tbody tr").count()).toBe(100);
      const { columns } = await server.call<{ columns: { nullShare: number }[] }>(
        "GET",
        "/api/conversations/c_million/aliases/million/schema",
      );
      expect(columns.map(({ nullShare }) => nullShare)).toEqual([0, 0, 0.1]);
      const schema = async (): Promise<string[]> =>
        (await panel().locator(".schema tbody tr").allInnerTexts()).map((row) => row.replaceAll("\n", ""));
      await expect
        .poll(schema, shown)
        .toEqual(["id\tinteger\t0 %\t1,000,000\t0 … 999,999", "venue\ttext\t0 %\t37\tv0 … v9", "amount\tnumber\t10 %\t10,007\t0 … 10,006"]);
      expect(await panel().locator(".schema thead th").allInnerTexts()).toEqual(["Column", "Type", "Empty", "Distinct", "Range"]);
      expect(await findBarriers(page)).toEqual([]);

      const first = (): Promise<string> => panel().locator(".rows-table tbody tr").first().innerText();
      await page.getByRole("button", { name: "Next" }).click();
      await expect.poll(() => status.innerText(), shown).toBe("101–200 of 1,000,000");
      await expect.poll(first, shown).toBe("100\tv26\t–");
      await page.getByRole("button", { name: "Previous" }).click();
      await expect.poll(() => status.innerText(), shown).toBe("1–100 of 1,000,000");

      const filter = async (column: string, op: string, value: string): Promise<void> => {
        await page.getByLabel("Column to filter by").selectOption(column);
        await page.getByLabel("Comparison").selectOption(op);
        await page.getByLabel("Value", { exact: true }).fill(value);
        await page.getByRole("button", { name: "Add filter" }).click();
      };
      const all = Array.from({ length: million }, (_none, n) => n);
      const fitting = all.filter((n) => n % 37 === 5);
      await filter("venue", "eq", "v5");
      await expect
        .poll(() => status.innerText(), shown)
        .toBe(`1–100 of ${fitting.length.toLocaleString("en-US")} matches (1,000,000 rows)`);
      await page.getByRole("button", { name: "Next" }).click();
      await expect.poll(first, shown).toBe(rowOf(fitting[100] ?? 0));
      const few = fitting.filter((n) => (amountOf(n) ?? 0) > 10_000);
      await filter("amount", "gt", "10000");
      await expect.poll(() => status.innerText(), shown).toContain(`of ${few.length.toLocaleString("en-US")} matches`);
      await panel().locator(".rows-table th").getByRole("button", { name: "id" }).click();
      await panel().locator(".rows-table th").getByRole("button", { name: "id" }).click();
      await expect.poll(first, shown).toBe(rowOf(few.at(-1) ?? 0));
      expect(await panel().locator(".rows-table th").first().getAttribute("aria-sort")).toBe("descending");
      await page.getByRole("button", { name: "Remove the filter venue = v5" }).click();
      await page.getByRole("button", { name: "Remove the filter amount > 10000" }).click();
      await expect.poll(() => status.innerText(), shown).toBe("1–100 of 1,000,000");

      await page.getByRole("searchbox", { name: "Search in all columns" }).fill("999999");
      await expect.poll(() => status.innerText(), shown).toBe("1–1 of 1 matches (1,000,000 rows)");
      expect(await panel().locator(".rows-table tbody tr").allInnerTexts()).toEqual([rowOf(999_999)]);
      await page.getByRole("searchbox", { name: "Search in all columns" }).fill("no such thing");
      await panel().getByText("No matching rows.").waitFor(shown);
      // Ten requests over 18 MB of data: a schema and pages of a few kilobytes each.
      const loaded = await Promise.all(sizes);
      expect(loaded.length).toBeGreaterThan(9);
      expect(Math.max(...loaded)).toBeLessThan(8_000);
      expect(page.faults).toEqual([]);
    },
    6 * minutes,
  );
});

/** Ignores responses that a newer request has replaced. */
function sizeOf(response: Response): Promise<number> {
  return response.body().then(
    ({ length }) => length,
    () => 0,
  );
}

function rowOf(n: number): string {
  return [n.toLocaleString("en-US"), `v${n % 37}`, amountOf(n)?.toLocaleString("en-US") ?? "–"].join("\t");
}

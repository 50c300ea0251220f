import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConversationDocument } from "../../src/protocol/http-conversations.ts";
import { openBrowser, openDetails, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { saveDownload } from "./save-download.ts";
import { evil, hostileScript } from "./scripts.ts";
import { noHarm, watchForHarm } from "./watch-for-harm.ts";

const minutes = 60_000;
const question = `${evil} <script>window.owned=9</script> [x](javascript:window.owned=15) ![y](https://evil.example/question.png)`;

/** Markup, script addresses and remote pictures from every source: person, model, tool, cell, file. All of it must stay text. */
describe("untrusted text on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };
  let harm: () => Promise<unknown>;

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer(hostileScript)]);
    page = await server.visit(browser);
    harm = watchForHarm(page, server.url);
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const panel = (): Locator => page.locator(".panel");

  it(
    "stays text in a turn: question, plan, tool arguments, output, errors, alt text, titles, conversation names",
    async () => {
      await page.getByRole("textbox", { name: "Your question" }).fill(question);
      await page.keyboard.press("Enter");
      await page.locator("[data-status=ended]").waitFor({ timeout: 2 * minutes });
      await openDetails(page.locator(".timeline"));
      for (const call of await page.locator(".call > details").all()) await openDetails(call);
      expect(await page.locator(".question p").innerText()).toBe(question);
      expect(await page.locator(".plan").innerText()).toContain(`${evil}\n`);
      expect(await page.locator(".plan").innerText()).toContain("<script>window.owned=2</script>");
      expect(await page.locator(".call").nth(0).locator(".json").innerText()).toBe(JSON.stringify({ symbol: evil }, null, 2));
      expect(await page.locator(".output").first().innerText()).toContain(
        `${evil}\n<script>window.owned=3</script> [a](javascript:window.owned=8) ![p](https://evil.example/stdout.png)`,
      );
      expect(await page.locator(".call-reason").last().innerText()).toContain(`ValueError: ${evil}`);
      expect(await page.locator(".answer img").getAttribute("alt")).toBe(`A line with ${evil} in its words`);
      expect(await page.locator(".artifact .chart-title").allInnerTexts()).toEqual([evil, evil]);
      await expect.poll(() => page.locator(".conversation-title").innerText(), soon).toContain(evil);
      expect(await harm()).toEqual(noHarm);
      expect(await findBarriers(page)).toEqual([]);
    },
    4 * minutes,
  );

  it("stays text in an answer, even when the server has not removed it", async () => {
    await page.route("**/api/conversations/c_*", async (route) => {
      const response = await route.fetch();
      const document = (await response.json()) as ConversationDocument;
      const part = document.messages[1]?.parts.find(({ type }) => type === "text");
      if (part) part["text"] = hostileScript.synthesis;
      await route.fulfill({ response, json: document });
    });
    await page.reload();
    await page.locator(".answer").waitFor();
    await page.unrouteAll();
    const words = await page.locator(".answer").innerText();
    expect(words).toContain(`An answer with ${evil} and <script>window.owned=5</script>.`);
    expect(words).toContain("a link and another and a good one (https://example.org/page).");
    expect(words).toContain("<a href='javascript:window.owned=12'>html link</a> https://example.org/auto javascript:window.owned=13 ref");
    expect(words).toContain("[picture left out: a remote picture] [picture left out: inline] [picture left out: by reference]");
    const links = page.locator(".answer a");
    expect(await links.evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href))).toEqual([
      "https://example.org/page",
      "https://example.org/auto",
    ]);
    expect(await links.first().getAttribute("rel")).toContain("noopener");
    for (const text of ["a link", "another", "ref"]) await page.locator(".answer").getByText(text, { exact: true }).click();
    expect(await harm()).toEqual(noHarm);
  });

  it("stays text in the panel: titles, numbers, legends, code, results, and the saved file of a chart", async () => {
    await page.getByRole("button", { name: "Open Chart 1" }).click();
    await panel().locator(".chart-marks path").first().waitFor();
    expect(await panel().locator("h2").innerText()).toContain(evil);
    expect(await panel().locator(".chart-legend button").allInnerTexts()).toEqual([evil, "javascript:window.owned=10"]);
    await panel().locator(".chart-plot").focus();
    await page.keyboard.press("End");
    await expect.poll(() => panel().locator(".chart-tooltip").innerText(), soon).toContain(evil);
    const svg = await saveDownload(page, panel().getByRole("button", { name: "Download as SVG" }));
    const drawn = await page.evaluate((text) => {
      const all = [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("*")];
      const plain = new Set("svg g title desc defs clipPath rect line path circle text tspan".split(" "));
      return {
        words: all[0]?.textContent,
        foreign: all.map(({ tagName }) => tagName).filter((tag) => !plain.has(tag)),
        active: all.flatMap((element) => element.getAttributeNames()).filter((name) => /^on|href/i.test(name)),
      };
    }, svg.text);
    expect(drawn).toEqual({ words: expect.stringContaining(evil), foreign: [], active: [] });
    expect(svg.name).toMatch(/^[\w-]+\.svg$/);
    for (const [tab, part] of [
      ["Numbers", ".data-table"],
      ["Code", ".editor"],
      ["Data", ".aliases"],
    ] as const) {
      await page.getByRole("tab", { name: tab }).click();
      await panel().locator(part).waitFor();
      if (tab === "Numbers")
        expect(await panel().locator("tbody td:first-child").allInnerTexts()).toEqual([evil, "javascript:window.owned=4"]);
      expect(await findBarriers(page, ".panel")).toEqual([]);
    }
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Open Figure 1" }).click();
    await page.getByRole("tab", { name: "Numbers" }).click();
    await panel().locator(".data-table").waitFor();
    await page.keyboard.press("Escape");
    expect(await harm()).toEqual(noHarm);
  });

  it(
    "stays text in the data browser: rows of a tool, columns, results, and the name of a file",
    async () => {
      const id = page.url().split("/").at(-1) ?? "";
      const csv = `"${evil.replaceAll('"', '""')}",note\n"${evil.replaceAll('"', '""')}",javascript:window.owned=16\nx,![p](https://evil.example/cell.png)\n`;
      expect(await server.upload(id, `${evil}.csv`, csv)).toBe(201);
      await page.reload();
      const chips = page.getByRole("list", { name: "Data in this conversation" }).getByRole("button");
      await expect.poll(() => chips.count(), soon).toBe(3);
      const browse = async (chip: Locator, first: string[]): Promise<void> => {
        await chip.click();
        await expect
          .poll(() => panel().locator(".rows-table tbody tr").first().locator("td").allInnerTexts(), { timeout: minutes })
          .toEqual(first);
        expect(await panel().locator(".rows-table th").allInnerTexts()).toContain(evil);
        expect(await panel().locator(".schema tbody th").allInnerTexts()).toContain(evil);
        await page.getByLabel("Column to filter by").selectOption(evil);
        await page.getByLabel("Value", { exact: true }).fill(evil);
        await page.getByRole("button", { name: "Add filter" }).click();
        await panel()
          .getByRole("button", { name: `Remove the filter ${evil} = ${evil}` })
          .waitFor();
        await expect.poll(() => panel().locator(".rows-table tbody tr").first().locator("td").allInnerTexts(), soon).toEqual(first);
        expect(await findBarriers(page, ".panel")).toEqual([]);
        await panel().getByRole("button", { name: "Close", exact: true }).click();
      };
      await browse(chips.filter({ hasText: "get_prices_1" }), ["1", evil, "101"]);
      await browse(chips.filter({ hasText: "result_1" }), [evil, "javascript:window.owned=11", "![p](https://evil.example/row.png)"]);
      await browse(chips.filter({ hasNotText: /get_prices_1|result_1/ }), [evil, "javascript:window.owned=16"]);
      expect(await harm()).toEqual(noHarm);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );
});

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConversationDocument } from "../../src/protocol/http-conversations.ts";
import { openBrowser, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { sampleCharts } from "./sample-charts.ts";
import {
  approvalScript,
  endlessScript,
  evil,
  failedChartScript,
  galleryScript,
  hostileScript,
  scriptApprovalScript,
  sparseScript,
} from "./scripts.ts";

const minutes = 60_000;

/** The page against a real server on the default driver, with turns that go every way a turn can go. */
describe("turns on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    browser = await openBrowser();
    server = await openPageServer(endlessScript);
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
  async function begin(script: typeof endlessScript, question: string): Promise<void> {
    await server.restart(script);
    await page.goto(server.url);
    await page.locator(".composer").waitFor();
    await ask(question);
  }
  const ended = (): Promise<void> => page.locator("[data-status=ended]").waitFor({ timeout: 2 * minutes });

  it(
    "shows what a turn does while it does it, goes on after a reload, and stops in mid-cell",
    async () => {
      await ask("What is the mean price?");
      const calls = page.locator(".call");
      await page.getByText("begun", { exact: true }).waitFor({ timeout: 2 * minutes });
      expect(await page.locator(".plan").innerText()).toBe("Plan\nmean price\na chart is asked for · all days");
      expect((await calls.nth(0).innerText()).split("\n").filter((line) => !/ m?s$/.test(line))).toEqual([
        "get_prices",
        "notes",
        "300 rows",
        expect.stringMatching(/ KB$/),
        "get_prices_1",
      ]);
      expect(await calls.nth(2).locator(".code-line").allTextContents()).toEqual([
        "# goes on and on\n",
        "print('begun', flush=True)\n",
        "while True: pass\n",
      ]);
      expect(await calls.nth(2).locator(".code-line").first().getAttribute("data-line")).toBe("1");
      expect(await calls.nth(2).locator(".code-keyword").allTextContents()).toEqual(["True", "while", "True", "pass"]);
      const picture = page.locator(".thumb img");
      await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), soon).toBeGreaterThan(100);
      expect(await picture.getAttribute("alt")).toBe("A line of daily prices over three hundred days");
      expect(await findBarriers(page)).toEqual([]);
      const address = page.url();
      expect(address).toMatch(/\/c\/c_[0-9a-f]{32}$/);

      await page.reload();
      await page.getByText("begun", { exact: true }).waitFor();
      await page.getByRole("status").getByText("Working").waitFor();
      expect(await calls.count()).toBe(3);
      expect(await page.locator(".thumb img").count()).toBe(1);

      await page.getByRole("button", { name: "Stop" }).click();
      await ended();
      expect(await page.locator(".call").count()).toBe(0);
      expect(await page.locator(".timeline").innerText()).toMatch(/^What was done\n3 steps, 3 tool calls, /);
      expect(await page.locator(".turn-foot").innerText()).toContain("Stopped");
      expect(await page.locator(".notices").innerText()).toContain("Low confidence.");
      expect(page.faults).toEqual([]);
    },
    5 * minutes,
  );

  it(
    "draws each type of chart inline",
    async () => {
      await begin(galleryScript, "Every type of chart, please");
      await ended();
      await expect.poll(() => page.locator(".answer .chart .chart-plot svg").count(), soon).toBe(sampleCharts.length);
      expect(await page.locator(".answer .chart-title").allInnerTexts()).toEqual(sampleCharts.map(({ title }) => title));
      for (const [index] of sampleCharts.entries())
        expect(await page.locator(".answer .chart-marks").nth(index).locator("path").count()).toBeGreaterThan(0);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );

  it(
    "says in sight that the chart failed, and why",
    async () => {
      await begin(failedChartScript, "Plot the mean price");
      await ended();
      expect(await page.locator("[data-gap=chart_not_rendered]").innerText()).toMatch(/^The chart was not drawn\. /);
      const notices = await page.locator(".notice-major").allInnerTexts();
      expect(notices).toEqual(["Low confidence.", expect.stringContaining("no such column: prize")]);
      expect(await page.locator(".notice-major").first().isVisible()).toBe(true);
      await page.locator(".timeline > summary").click();
      expect(await page.locator(".call-reason").last().innerText()).toContain("no such column: prize");
      expect(await findBarriers(page)).toEqual([]);
    },
    4 * minutes,
  );

  it(
    "says in sight that a line has a hole, and copies the answer as it is",
    async () => {
      await begin(sparseScript, "Plot the prices");
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

  it(
    "asks before a tool changes something, with its arguments, and waits for the answer",
    async () => {
      await begin(approvalScript, "Delete the note");
      const question = page.getByRole("alertdialog");
      await question.waitFor({ timeout: minutes });
      expect(await question.innerText()).toContain("delete_note of notes");
      expect(await question.locator(".json").innerText()).toBe('{\n  "symbol": "N-17"\n}');
      expect(await findBarriers(page)).toEqual([]);
      await page.reload();
      await page.getByRole("alertdialog").getByRole("button", { name: "Allow once" }).click();
      await ended();
      await page.locator(".timeline > summary").click();
      expect(await page.locator(".approval-answer").innerText()).toBe("Allowed");
      expect(await page.locator(".call .mark").first().getAttribute("aria-label")).toBe("done");

      await page.getByRole("button", { name: "Ask again" }).click();
      await page.getByRole("alertdialog").getByRole("button", { name: "Refuse" }).click();
      await expect.poll(() => page.locator("[data-status=ended]").count(), soon).toBe(1);
      await ended();
      await page.locator(".timeline > summary").click();
      expect(await page.locator(".approval-answer").innerText()).toBe("Refused");
      expect(await page.locator(".call .mark").first().getAttribute("aria-label")).toBe("refused");
    },
    4 * minutes,
  );

  it(
    "asks for what a script calls, too",
    async () => {
      await begin(scriptApprovalScript, "Delete the note by a script");
      const question = page.getByRole("alertdialog");
      await question.waitFor({ timeout: minutes });
      expect(await question.innerText()).toContain("delete_note of notes");
      expect(await question.locator(".json").innerText()).toBe('{\n  "symbol": "N-18"\n}');
      await question.getByRole("button", { name: "Allow once" }).click();
      await ended();
      await page.locator(".timeline > summary").click();
      expect(await page.locator(".approval-answer").innerText()).toBe("Allowed");
    },
    4 * minutes,
  );

  it(
    "keeps markup, script addresses and remote pictures as text, wherever they come from",
    async () => {
      const foreign: string[] = [];
      page.on("request", (request) => {
        if (!request.url().startsWith(server.url) && !request.url().startsWith("blob:")) foreign.push(request.url());
      });
      await begin(hostileScript, `${evil} <script>window.owned=9</script>`);
      await ended();
      await page.locator(".timeline > summary").click();
      for (const summary of await page.locator(".call > details > summary").all()) await summary.click();
      expect(await page.locator(".question p").innerText()).toBe(`${evil} <script>window.owned=9</script>`);
      expect(await page.locator(".output").innerText()).toContain(evil);
      expect(await page.locator(".plan").innerText()).toContain(evil);
      // The server has taken it out of the answer already; a page that got it all the same keeps it as text.
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
      expect(words).toContain("a link and another and a good one.");
      expect(words).toContain("[picture left out: a remote picture] [picture left out: inline]");
      expect(await page.locator(".answer a").evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href))).toEqual([
        "https://example.org/page",
      ]);
      expect(await page.locator(".artifact .chart-title").allInnerTexts()).toEqual([evil, evil]);
      const sources = await page.locator("img").evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src));
      expect(sources).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/artifacts\/[0-9a-f]{64}\.png$/)]);
      await page.getByRole("button", { name: "Open Chart 1" }).click();
      for (const [tab, part] of [
        ["Numbers", ".data-table"],
        ["Code", ".editor"],
        ["Data", ".aliases"],
      ] as const) {
        await page.getByRole("tab", { name: tab }).click();
        await page.locator(`.panel ${part}`).waitFor();
      }
      expect(await page.evaluate(() => (globalThis as unknown as { owned?: number }).owned)).toBeUndefined();
      expect(foreign).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );
});

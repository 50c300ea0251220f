import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { demoQuestion, waysToConnect, worksWithoutModel } from "../../src/protocol/connect-model.ts";
import type { ConversationDocument, ConversationList } from "../../src/protocol/http-conversations.ts";
import { formatBytes, formatDuration } from "../../web/page/format.ts";
import { openBrowser, openPage, openDetails, soon } from "./browser.ts";
import { countScriptBytes } from "./count-script-bytes.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";

const minutes = 60_000;

/** A person with a fresh machine, no key and the bundled sample: from the printed link to the state after a restart. */
describe("a conversation on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer()]);
    page = await openPage(browser);
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  }, 2 * minutes);

  const ended = (): Promise<void> => page.locator("[data-status=ended]").waitFor({ timeout: 3 * minutes });
  /** White space does not make the demo's question another one. */
  const spaced = demoQuestion.replace("over two", "over  two");
  const titles = (): Locator => page.locator(".conversations .conversation-title");

  it("logs in by the one-time link after a click, which exchanges it for a cookie", async () => {
    const { url } = await server.call<{ url: string }>("POST", "/api/login-links");
    expect(new URL(url).search).toMatch(/^\?code=.{20,}$/);
    await page.goto(url);
    expect(await page.context().cookies()).toEqual([]);
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Log in as local" }).click();
    await page.locator(".composer").waitFor();
    expect(page.url()).toBe(`${server.url}/`);
    expect(await page.locator(".sidebar .tenant").textContent()).toBe("Tenant: local");
    // The page with the code sends its origin as the referrer, and newer browsers drop that at the redirect.
    expect(["", `${server.url}/`]).toContain(await page.evaluate(() => document.referrer));
    expect(await page.evaluate(() => performance.getEntriesByType("navigation")[0]?.name)).toBe(`${server.url}/`);
    expect((await page.context().cookies()).map(({ httpOnly, sameSite }) => [httpOnly, sameSite])).toEqual([[true, "Strict"]]);
    expect(await page.evaluate(() => document.cookie)).toBe("");
    const late = await openPage(browser);
    expect((await late.goto(url))?.status()).toBe(403);
    expect(await late.context().cookies()).toEqual([]);
    expect(await findBarriers(late)).toEqual([]);
    await late.context().close();
    expect(await findBarriers(page)).toEqual([]);
  });

  it("loads less than 500 KB of compressed script, no inline script, and nothing from elsewhere", async () => {
    const fresh = await openPage(browser);
    const [origins, scriptBytes] = [new Set<string>(), countScriptBytes(fresh)];
    fresh.on("request", (request) => origins.add(new URL(request.url()).origin));
    await fresh.goto((await server.call<{ url: string }>("POST", "/api/login-links")).url);
    await fresh.getByRole("button", { name: "Log in as local" }).click();
    await fresh.locator(".composer").waitFor();
    expect(await scriptBytes()).toBeGreaterThan(50_000);
    expect(await scriptBytes()).toBeLessThan(500_000);
    expect([...origins]).toEqual([server.url]);
    await fresh.context().close();
    const answer = await page.request.get(`${server.url}/`);
    const policy = answer.headers()["content-security-policy"] ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self';");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(await answer.text()).not.toMatch(/<script(?![^>]* src=)|\son\w+=|javascript:/i);
  });

  it("answers another question with one card: no model, how to connect one, and what works without one", async () => {
    const question = "Which region has the highest revenue?";
    await page.locator(".composer textarea").fill(question);
    await page.keyboard.press("Enter");
    const card = page.locator(".no-model");
    await card.waitFor();
    const text = await card.innerText();
    expect(text).toMatch(/^No model is connected\n+The demo answers its sample question only\./);
    for (const { title, lines } of waysToConnect) for (const line of [title, ...lines]) expect(text).toContain(line);
    expect(await card.getByRole("listitem").allInnerTexts()).toEqual(worksWithoutModel.map((line) => line.replaceAll("`", "")));
    expect([await page.locator(".no-model, .notice, .turn").count(), await titles().count()]).toEqual([1, 0]);
    expect(await findBarriers(page)).toEqual([]);
    await card.getByRole("button", { name: "Dismiss" }).click();
    await card.waitFor({ state: "detached" });
    expect(await page.getByText(question).count()).toBe(0);
    await page.getByRole("button", { name: "New conversation" }).first().click();
  });

  it(
    "answers the sample question with figure, chart and coverage notices, and folds the timeline into one line",
    async () => {
      await page.getByRole("button", { name: /Reserves of all venues/ }).click();
      await page.locator("[data-status=running] .timeline[open]").waitFor({ timeout: minutes });
      await ended();
      const timeline = page.locator(".timeline");
      expect(await timeline.getAttribute("open")).toBeNull();
      expect((await timeline.innerText()).split("\n")).toEqual(["Steps taken", expect.stringMatching(/^4 steps, 4 tool calls, /)]);
      expect(await page.locator(".answer").innerText()).toContain("Total reserves of the venues fell by 106,201 BTC in two years");
      const notice = page.locator("[data-gap=coverage_events]");
      expect(await notice.innerText()).toContain("Harbour was first listed on 2025-03-03 with 35,000");
      expect(await notice.isVisible()).toBe(true);
      const picture = page.locator(".answer img");
      await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), soon).toBeGreaterThan(500);
      expect(await picture.getAttribute("alt")).toMatch(/^Two panels: total reserves by day/);
      expect(await page.locator(".artifact-head .badge").allInnerTexts()).toEqual(["Figure 1", "Chart 1"]);
      expect(await page.locator(".answer .chart-marks path").count()).toBe(1);
      expect(await titles().allInnerTexts()).toEqual([expect.stringContaining("How did the total reserves")]);
      expect(await findBarriers(page)).toEqual([]);
      expect(page.faults).toEqual([]);
    },
    5 * minutes,
  );

  it("shows the server, rows, bytes and time of each call as the server recorded them", async () => {
    await openDetails(page.locator(".timeline"));
    const conversation = await server.call<ConversationDocument>("GET", `/api/conversations/${page.url().split("/").at(-1)}`);
    const parts = conversation.messages[1]?.parts ?? [];
    const order = parts.flatMap(({ type, data }) => (type === "data-tool-start" ? [(data as ToolEnd).callId] : []));
    const ends = parts.flatMap(({ type, data }) => (type === "data-tool-end" ? [data as ToolEnd] : []));
    const recorded = order.map((callId) => ends.find((end) => end.callId === callId));
    expect(recorded.map((end) => [end?.tool, end?.server, end?.rows])).toEqual([
      ["get_reserves", "market", 28_878],
      ["get_prices", "market", 731],
      ["code_interpreter", undefined, 24],
      ["render_chart", undefined, undefined],
    ]);
    const lines = page.locator(".call");
    expect(await lines.locator(".call-tool").allInnerTexts()).toEqual(recorded.map((end) => end?.tool));
    expect(await lines.locator(".call-facts").allInnerTexts()).toEqual(
      recorded.map((end) =>
        [
          end?.rows === undefined ? null : `${end.rows.toLocaleString("en-US")} rows`,
          end?.bytes === undefined ? null : formatBytes(end.bytes),
          end?.alias ?? null,
          formatDuration(end?.durationMs ?? -1),
        ]
          .filter((fact) => fact !== null)
          .join("\n"),
      ),
    );
    expect(await lines.locator(".badge").allInnerTexts()).toEqual(["market", "market"]);
    await openDetails(lines.nth(2).locator("details"));
    expect(await lines.nth(2).locator(".output").innerText()).toContain(
      "731 days; 4 coverage events; largest monthly outflow: -14,106 BTC",
    );
    expect(await findBarriers(page, ".timeline")).toEqual([]);
  });

  it(
    "asks a question again and with edits; the new answer replaces the old one, also after a reload",
    async () => {
      const address = page.url();
      const turnId = (): Promise<string | null> => page.locator("[data-status=ended]").getAttribute("data-turn");
      const first = await turnId();
      await page.locator(".turn-foot").getByRole("button", { name: "Ask again" }).click();
      await page.locator("[data-status=running]").waitFor();
      await ended();
      expect(await turnId()).not.toBe(first);
      await page.locator(".question").getByRole("button", { name: "Edit" }).click();
      await page.getByRole("textbox", { name: "Edit the question" }).fill(spaced);
      await page.locator(".question").getByRole("button", { name: "Ask again" }).click();
      await page.locator("[data-status=running]").waitFor();
      await ended();
      expect(await page.locator(".question p").allInnerTexts()).toEqual([spaced]);
      await page.reload();
      await ended();
      expect([page.url(), await page.locator(".question p").allInnerTexts()]).toEqual([address, [spaced]]);
    },
    6 * minutes,
  );

  it(
    "lists and searches conversations after a restart of the server",
    async () => {
      await page.getByRole("button", { name: "New conversation" }).first().click();
      await page.getByRole("textbox", { name: "Your question" }).fill(demoQuestion);
      await page.keyboard.press("Enter");
      await ended();
      const { conversations } = await server.call<ConversationList>("GET", "/api/conversations");
      for (const [index, title] of ["Zebras", "Since 2025"].entries())
        await server.call("PATCH", `/api/conversations/${conversations[index]?.id}`, { title });
      await server.restart();
      await page.goto(server.url);
      await expect.poll(() => titles().count(), soon).toBe(2);
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("since 2025");
      await expect.poll(() => titles().count(), soon).toBe(1);
      await page.locator(".conversations a").click();
      await expect.poll(() => page.locator(".artifact").count(), soon).toBe(2);
      const picture = page.locator(".answer img");
      await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth), soon).toBeGreaterThan(500);
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("nothing like it");
      await page.getByText("No matches.").waitFor();
      await page.getByRole("searchbox", { name: "Search conversations" }).fill("");
      await expect.poll(() => titles().count(), soon).toBe(2);
      const current = page.locator(".conversations li.is-current");
      await current.getByRole("button", { name: /^Delete “/ }).click();
      expect(await findBarriers(page, ".sidebar")).toEqual([]);
      await page.getByRole("alertdialog").getByRole("button", { name: "Delete", exact: true }).click();
      await expect.poll(() => titles().allInnerTexts(), soon).toEqual(["Zebras"]);
      expect(page.faults).toEqual([]);
    },
    5 * minutes,
  );
});

interface ToolEnd {
  readonly callId: string;
  readonly tool: string;
  readonly server?: string;
  readonly rows?: number;
  readonly bytes?: number;
  readonly alias?: string;
  readonly durationMs: number;
}

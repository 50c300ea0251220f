import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser, openDetails, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { approvalScript, scriptApprovalScript } from "./scripts.ts";

const minutes = 60_000;

/** Approvals of a tool that deletes, checked against the backend's own record of its calls. */
describe("approval on the page", () => {
  let browser: Browser;
  let server: PageServer;
  let page: Page & { readonly faults: string[] };

  beforeAll(async () => {
    [browser, server] = await Promise.all([openBrowser(), openPageServer(approvalScript)]);
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
  const ended = (): Promise<void> => page.locator("[data-status=ended]").waitFor({ timeout: 2 * minutes });

  it(
    "shows a call that changes something with its arguments, and makes it only after approval",
    async () => {
      await ask("Delete the note");
      const question = page.getByRole("alertdialog");
      await question.waitFor({ timeout: minutes });
      expect(await question.innerText()).toContain("delete_note of notes");
      expect(await question.locator(".json").innerText()).toBe('{\n  "symbol": "N-17"\n}');
      expect(await findBarriers(page)).toEqual([]);
      await page.reload();
      await question.waitFor();
      expect(server.calls()).toEqual([]);
      await question.getByRole("button", { name: "Allow once" }).click();
      await ended();
      expect(server.calls()).toEqual([["delete_note", { symbol: "N-17" }]]);
      await openDetails(page.locator(".timeline"));
      expect(await page.locator(".approval-answer").innerText()).toBe("Allowed");
      expect(await page.locator(".call").locator(".mark").first().getAttribute("aria-label")).toBe("done");

      await page.getByRole("button", { name: "Ask again" }).click();
      await question.getByRole("button", { name: "Refuse" }).click();
      await expect.poll(() => page.locator("[data-status=ended]").count(), soon).toBe(1);
      await ended();
      await openDetails(page.locator(".timeline"));
      expect(await page.locator(".approval-answer").innerText()).toBe("Refused");
      expect(await page.locator(".call").locator(".mark").first().getAttribute("aria-label")).toBe("refused");
      expect(server.calls()).toHaveLength(1);
    },
    4 * minutes,
  );

  it(
    "asks for the calls of a script too",
    async () => {
      const before = server.calls().length;
      await server.restart(scriptApprovalScript);
      await page.goto(server.url);
      await ask("Delete the note by a script");
      const question = page.getByRole("alertdialog");
      await question.waitFor({ timeout: minutes });
      expect(await question.innerText()).toContain("delete_note of notes");
      expect(await question.locator(".json").innerText()).toBe('{\n  "symbol": "N-18"\n}');
      expect(server.calls()).toHaveLength(before);
      await question.getByRole("button", { name: "Allow once" }).click();
      await ended();
      await openDetails(page.locator(".timeline"));
      expect(await page.locator(".approval-answer").innerText()).toBe("Allowed");
      expect(server.calls().slice(before)).toEqual([["delete_note", { symbol: "N-18" }]]);
    },
    4 * minutes,
  );
});

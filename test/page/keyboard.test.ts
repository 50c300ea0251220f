import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBrowser, soon } from "./browser.ts";
import { openPageServer, type PageServer } from "./open-page-server.ts";
import { approvalScript, endlessScript } from "./scripts.ts";

const minutes = 60_000;

/** Everything by keyboard alone: no click, no pointer, no focus set by the test. */
describe("the page by keyboard alone", () => {
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

  const panel = (): Locator => page.locator(".panel");
  const press = (...keys: string[]): Promise<void> =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  /** Name of the focused element, as a screen reader says it. An element without a visible focus does not count. */
  const focused = (): Promise<string> =>
    page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return "";
      const label = element.getAttribute("aria-label") ?? element.closest("label")?.textContent ?? element.textContent ?? "";
      const frame = element.closest(".composer, .editor") ?? element;
      return getComputedStyle(frame).outlineStyle === "none" ? `(not shown) ${label}` : label.trim();
    });
  /** Presses Tab until an element of that name has the focus. */
  async function reach(name: string | RegExp, key = "Tab"): Promise<void> {
    const passed: string[] = [];
    for (let steps = 0; steps < 80; steps += 1) {
      await press(key);
      const at = await focused();
      if (typeof name === "string" ? at === name : name.test(at)) return;
      passed.push(at.slice(0, 30));
    }
    throw new Error(`${key} does not reach ${name}: ${passed.join(" → ")}`);
  }

  it(
    "skips to the conversation, asks, and stops a cell in the middle",
    async () => {
      await press("Tab");
      expect(await focused()).toBe("Skip to the conversation");
      await press("Enter");
      await reach("Your question");
      await page.keyboard.type("What is the mean price?");
      await press("Enter");
      await page.getByText("tick 3").waitFor({ timeout: 2 * minutes });
      await reach("Stop");
      await press("Enter");
      await page.locator("[data-status=ended]").waitFor({ timeout: minutes });
      expect(await page.locator(".turn-foot").innerText()).toContain("Stopped");
    },
    4 * minutes,
  );

  it(
    "edits the question, asks again, and opens the timeline",
    async () => {
      await reach("Edit", "Shift+Tab");
      await press("Enter");
      expect(await focused()).toBe("Edit the question");
      await press("Control+a");
      await page.keyboard.type("And by key?");
      await reach("Ask again");
      await press("Enter");
      await page.locator("[data-status=running]").waitFor();
      await page
        .getByText("tick 1")
        .first()
        .waitFor({ timeout: 2 * minutes });
      await reach("Stop");
      await press("Enter");
      await page.locator("[data-status=ended]").waitFor({ timeout: minutes });
      expect(await page.locator(".question p").allInnerTexts()).toEqual(["And by key?"]);
      await reach(/^Steps taken/, "Shift+Tab");
      await press("Enter");
      await expect.poll(() => page.locator(".call").count(), soon).toBe(3);
      await press("Enter");
      await expect.poll(() => page.locator(".call").count(), soon).toBe(0);
    },
    5 * minutes,
  );

  it(
    "opens a figure, zooms, goes through its tabs, sorts its numbers, edits its code and runs it",
    async () => {
      await reach("Open Figure 1");
      await press("Enter");
      await panel().waitFor();
      await reach("Zoom in");
      await press("Enter");
      expect(await panel().locator("output").innerText()).toBe("150 %");
      await press("0");
      await expect.poll(() => panel().locator("output").innerText(), soon).toBe("100 %");
      await reach("View", "Shift+Tab");
      await press("ArrowRight");
      expect(await focused()).toBe("Numbers");
      await panel().locator(".data-table").waitFor();
      await press("Tab", "Tab");
      await reach(/^y/);
      await press("Enter", "Enter");
      await expect.poll(() => panel().locator("th[aria-sort=descending]").count(), soon).toBe(1);
      await reach("Numbers", "Shift+Tab");
      await press("ArrowRight");
      await panel().locator(".editor textarea").waitFor();
      await reach("Code of the cell");
      await press("Control+a");
      await page.keyboard.insertText("print('by key')\nset_result({'mean': 1})\n");
      await press("Control+Enter");
      await panel()
        .getByText("by key", { exact: true })
        .waitFor({ timeout: 2 * minutes });
      expect(await panel().locator("[data-result]").innerText()).toContain('"mean": 1');
      // Tab leaves the editor.
      await reach("Code of the cell", "Shift+Tab");
      await press("Tab");
      expect(await focused()).toBe("Run");
    },
    5 * minutes,
  );

  it(
    "opens the data of a figure, filters, sorts and pages through it, and returns the focus",
    async () => {
      await reach("Code", "Shift+Tab");
      await press("ArrowRight");
      await reach(/^get_prices_1/);
      await press("Enter");
      const status = panel().locator(".pager [role=status]");
      await expect.poll(() => status.innerText(), { timeout: minutes }).toBe("1–100 of 300");
      await reach("Next");
      await press("Enter");
      await expect.poll(() => status.innerText(), soon).toBe("101–200 of 300");
      await reach("Column to filter by", "Shift+Tab");
      await page.keyboard.type("price");
      await press("Tab", "ArrowDown", "ArrowDown", "Tab");
      expect(await focused()).toBe("Value");
      await page.keyboard.type("102");
      await press("Enter");
      await expect.poll(() => status.innerText(), soon).toMatch(/ of 86 matches \(300 rows\)$/);
      await reach("Remove the filter price < 102");
      await press("Enter");
      await expect.poll(() => status.innerText(), soon).toBe("1–100 of 300");
      await reach(/^price/);
      await press("Space");
      await expect.poll(() => panel().locator(".rows-table th[aria-sort=ascending]").innerText(), soon).toContain("price");
      await press("Escape");
      expect(await panel().count()).toBe(0);
      await expect.poll(focused, soon).toBe("Open Figure 1");
    },
    4 * minutes,
  );

  it(
    "finds a conversation, answers an approval request, and chooses the colours",
    async () => {
      await server.restart(approvalScript);
      await page.goto(server.url);
      await page.locator(".conversations a").waitFor();
      await reach("Search conversations");
      await page.keyboard.type("by key");
      await reach(/^What is the mean price\?/);
      await press("Enter");
      await page.locator("[data-status=ended]").waitFor(soon);
      await reach("Your question");
      await page.keyboard.type("Delete the note");
      await press("Enter");
      await page.getByRole("alertdialog").waitFor({ timeout: minutes });
      await reach("Refuse");
      await press("Shift+Tab");
      expect(await focused()).toBe("Allow once");
      await press("Enter");
      await expect.poll(() => page.locator("[data-status=ended]").count(), { timeout: minutes }).toBe(2);
      expect(server.calls().at(-1)).toEqual(["delete_note", { symbol: "N-17" }]);
      await reach(/^Colours/, "Shift+Tab");
      await page.keyboard.type("Dark");
      await expect.poll(() => page.evaluate(() => document.documentElement.dataset["theme"]), soon).toBe("dark");
      expect(page.faults).toEqual([]);
    },
    4 * minutes,
  );
});

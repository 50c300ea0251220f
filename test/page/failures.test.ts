import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { openLoopbackProviders } from "../fixtures/loopback-providers.ts";
import { openTestServer } from "../fixtures/open-test-server.ts";
import { openBrowser, openPage, soon } from "./browser.ts";
import { findBarriers } from "./find-barriers.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
}, 240_000);
afterAll(() => browser?.close());

it("shows the failure of a model once, with a red mark there and in the list, also after a reload", async () => {
  const provider = await openLoopbackProviders(
    (response) =>
      void response.writeHead(429, { "content-type": "application/json", "retry-after": "1" }).end('{"error":{"message":"slow down"}}'),
  );
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const models = { "openai-compatible": { baseUrl: provider.url } };
  const configuration = { model: "openai-compatible:m", models };
  const server = await openTestServer({ configuration, pageDirectory: undefined });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const page = await openPage(browser);
  await page.goto(server.server.createLoginLink());
  await page.getByRole("button", { name: "Log in as local" }).click();
  await page.locator(".composer textarea").fill("What is the mean price?");
  await page.keyboard.press("Enter");
  const sentence = "openai-compatible:m accepts no more requests for now (HTTP 429).";
  const expectFailure = async (): Promise<void> => {
    const card = page.locator(".turn-failure");
    await card.waitFor({ timeout: 60_000 });
    expect((await card.innerText()).split(/\n+/)).toEqual([sentence, "Ask again in 1 s; if it repeats, check the quota of the account."]);
    const shown = await page.locator("body").innerText();
    expect(shown.split(sentence)).toHaveLength(2);
    expect(await page.locator(".mark-ok, .notice").count()).toBe(0);
    expect(await page.locator(".timeline summary .mark-error").count()).toBe(1);
    expect(await page.locator(".turn-foot").innerText()).toContain("The model failed · openai-compatible:m · ");
    await expect.poll(() => page.locator(".conversations li").innerText(), soon).toContain("failed");
    expect(await findBarriers(page)).toEqual([]);
  };
  await expectFailure();
  await page.reload();
  await expectFailure();
  expect(page.faults).toEqual([]);
  await page.context().close();
}, 240_000);

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestServer, shortScript, type TestServer } from "../fixtures/open-test-server.ts";
import { openBrowser, openPage, soon } from "./browser.ts";

const minutes = 60_000;
const builtPage = path.join(import.meta.dirname, "../../dist/web");

/** Another site, on a host name and port of its own, whose page does what an attacker wants. */
async function openSite(html: string): Promise<{ readonly url: string; close(): unknown }> {
  const site = createServer((_request, response) => response.setHeader("content-type", "text/html").end(html));
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  return { url: `http://localhost:${(site.address() as AddressInfo).port}/`, close: () => site.close() };
}

describe("a login link from another site", { timeout: 4 * minutes }, () => {
  let browser: Browser;
  let open: TestServer;
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-login-page-"));
  beforeAll(async () => {
    browser = await openBrowser();
    const tokens = ["ann", "mallory"].map((tenant) => ({ tenant, sha256: createHash("sha256").update(tenant).digest("hex") }));
    open = await openTestServer({ script: shortScript, configuration: { auth: { tokens } }, token: "ann", pageDirectory: builtPage });
  }, 4 * minutes);
  afterAll(async () => {
    await browser?.close();
    await open?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  it("does not replace the login, whatever that site does; a click on the page that shows the tenant does", async () => {
    const page = await openPage(browser);
    await page.goto(open.server.createLoginLink("ann"));
    await page.getByRole("button", { name: "Log in as ann" }).click();
    await page.locator(".tenant", { hasText: "Tenant: ann" }).waitFor(soon);
    const tenant = async (): Promise<string> =>
      ((await (await page.request.get(`${open.url}/api/info`)).json()) as { tenant: string }).tenant;

    const link = open.server.createLoginLink("mallory");
    const code = new URL(link).searchParams.get("code")!;
    const form = `<form method="post" action="${open.url}/login"><input name="code" value="${code}"></form><script>document.forms[0].submit()</script>`;
    const attacks = [
      `<script>location = ${JSON.stringify(link)}</script>`,
      `<iframe src="${link}"></iframe><img src="${link}"><script>fetch(${JSON.stringify(link)}, { mode: "no-cors", credentials: "include" })</script>`,
      form,
      `<meta name="referrer" content="no-referrer">${form}`,
      `<iframe sandbox="allow-scripts allow-forms" srcdoc='${form}'></iframe>`,
      `<script>fetch("${open.url}/login", { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({ code: "${code}" }) })</script>`,
    ];
    for (const html of attacks) {
      const site = await openSite(html);
      await page.goto(site.url, { waitUntil: "networkidle" });
      await page.waitForLoadState("networkidle");
      expect([html, await tenant()]).toEqual([html, "ann"]);
      site.close();
    }

    const site = await openSite(`<a href="${link}">A picture of a cat</a>`);
    await page.goto(site.url);
    await page.getByRole("link").click();
    await page.getByText("This link logs this browser in as the tenant mallory").waitFor(soon);
    expect(await tenant()).toBe("ann");
    await page.getByRole("button", { name: "Log in as mallory" }).click();
    await page.locator(".tenant", { hasText: "Tenant: mallory" }).waitFor(soon);
    expect(page.url()).toBe(`${open.url}/`);
    site.close();
  });
});

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { loadConfiguration } from "../../src/config/load-configuration.ts";
import { createLog } from "../../src/server/http/create-log.ts";
import { openServer, type RunningServer } from "../../src/server/http/open-server.ts";
import type { ModelScript } from "../../src/models/model-script.ts";
import type { ServerInfo } from "../../src/protocol/http-operations.ts";
import type { TurnDocument } from "../../src/protocol/http-turns.ts";
import { notesServer } from "../fixtures/open-test-server.ts";
import { openPage } from "./browser.ts";

export interface PageServer extends AsyncDisposable {
  readonly url: string;
  /** Restarts the server on the same port and data, optionally with another script. */
  restart(script?: ModelScript): Promise<void>;
  /** Asks without a page and returns the ended turn. Default: the sample question. */
  ask(question?: string): Promise<TurnDocument>;
  /** Calls that reached the small MCP server, from its own record. */
  calls(): [string, unknown][];
  /** Opens a page through a one-time login link. */
  visit(browser: Browser, options?: BrowserContextOptions): Promise<Page & { readonly faults: string[] }>;
  call<Body = Record<string, unknown>>(method: string, pathname: string, body?: unknown): Promise<Body>;
  /** Uploads a file to a conversation and returns the HTTP status. */
  upload(conversationId: string, name: string, content: string | Uint8Array<ArrayBuffer>): Promise<number>;
}

/** Starts a real server with the real page on the default driver: with the bundled sample, or with a script over a small MCP server. */
export async function openPageServer(first?: ModelScript): Promise<PageServer> {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-page-"));
  const environment = { ...process.env, SLUICE_DATA: path.join(directory, "data"), SLUICE_MODEL: "" };
  const record = path.join(directory, "calls.jsonl");
  let current = first;
  let server: RunningServer = await open(0);
  const info = await call<ServerInfo>("GET", "/api/info");
  if (info.driver !== "gvisor")
    throw new Error(`The page is shown on the default driver, and this is ${info.driver}: ${info.driverProblem}`);

  async function open(port: number): Promise<RunningServer> {
    const file = path.join(directory, "sluice.config.json");
    if (current) {
      writeFileSync(path.join(directory, "script.json"), JSON.stringify(current));
      const notes = { command: process.execPath, args: [notesServer, record] };
      writeFileSync(file, JSON.stringify({ mcpServers: { notes }, model: "script:script.json" }));
    }
    const loaded = await loadConfiguration({ file: current ? file : null, workingDirectory: directory, environment });
    const log = createLog({ level: "error", format: "json", write: (line) => void process.stderr.write(line) });
    return openServer({ loaded, environment, host: "127.0.0.1", port, workingDirectory: directory, log });
  }

  async function call<Body>(method: string, pathname: string, body?: unknown): Promise<Body> {
    const response = await fetch(new URL(pathname, server.url), {
      method,
      headers: {
        authorization: `Bearer ${server.tokens.generated}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Body;
  }

  return {
    get url() {
      return server.url;
    },
    async restart(script = current) {
      const { port } = server;
      await server.close();
      current = script;
      server = await open(port);
    },
    ask: (question = info.samples[0]?.question ?? "") => call("POST", "/api/turns", { question, wait: true }),
    calls: () =>
      (existsSync(record) ? readFileSync(record, "utf8") : "")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as [string, unknown]),
    async visit(browser, options) {
      const { url } = await call<{ url: string }>("POST", "/api/login-links");
      const page = await openPage(browser, options);
      await page.goto(url);
      await page.getByRole("button", { name: "Log in as" }).click();
      await page.locator(".composer").waitFor();
      return page;
    },
    call,
    async upload(conversationId, name, content) {
      const address = new URL(`/api/conversations/${conversationId}/files?name=${encodeURIComponent(name)}`, server.url);
      const headers = { authorization: `Bearer ${server.tokens.generated}` };
      return (await fetch(address, { method: "POST", headers, body: content })).status;
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      rmSync(directory, { recursive: true });
    },
  };
}

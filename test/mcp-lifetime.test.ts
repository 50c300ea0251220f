import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openDataFiles } from "../src/data/files/open-data-files.ts";
import { cell, generations, openHttpClient, textOf, type TestClient } from "./fixtures/mcp-clients.ts";
import { defaultLifetimes, type Schedule, type ConnectionLifetimes } from "../src/server/mcp/mcp-parts.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 240_000;
const sluice = path.resolve(import.meta.dirname, "../bin/sluice");
type Server = ChildProcessByStdio<Writable, Readable, Readable>;

/** A client of the previous version that is only lines of JSON, so that everything on standard output is seen. */
function startServer(environment: Record<string, string> = {}): {
  server: Server;
  send(message: object): void;
  line(): Promise<Record<string, unknown>>;
  rest(): string;
} {
  const server = spawn(sluice, ["mcp"], { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...environment } });
  let text = "";
  server.stdout.on("data", (bytes: Buffer) => (text += bytes.toString()));
  return {
    server,
    send: (message) => void server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    async line() {
      while (!text.includes("\n")) await once(server.stdout, "data");
      const end = text.indexOf("\n");
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      return JSON.parse(line) as Record<string, unknown>;
    },
    rest: () => text,
  };
}

const initialize = {
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

/** Processes that this one started, and theirs. */
function descendants(pid: number): number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        return [[Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])] as const];
      } catch {
        return [];
      }
    });
  const own = parents.filter(([, parent]) => parent === pid).map(([child]) => child);
  return own.flatMap((child) => [child, ...descendants(child)]);
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(50);
}

describe("how sluice mcp ends", { timeout: HANG_MS }, () => {
  const endings: readonly (readonly [string, (server: Server) => unknown])[] = [
    ["when its client closes standard input", (server) => server.stdin.end()],
    ["at SIGTERM", (server) => server.kill("SIGTERM")],
  ];

  test.each(endings)("in the middle of a cell, %s: it ends the cell, leaves no process and exits with 0", async (_how, end) => {
    const { server, send, line, rest } = startServer();
    send(initialize);
    expect(await line()).toMatchObject({ id: 1, result: { protocolVersion: "2025-11-25", serverInfo: { name: "sluice" } } });
    send({ method: "notifications/initialized" });
    send({ id: 2, method: "tools/call", params: { name: "store_data", arguments: { name: "rows", data: [1] } } });
    expect(await line()).toMatchObject({ id: 2 });
    const args = cell("print('begun', flush=True)\nwhile True: pass", ["rows"]);
    send({ id: 3, method: "tools/call", params: { name: "code_interpreter", arguments: args, _meta: { progressToken: 7 } } });
    let heard: unknown = null;
    while (heard !== "begun") heard = ((await line())["params"] as { message?: string }).message;
    const started = descendants(server.pid!);
    expect(started.length).toBeGreaterThan(0);
    const exited = once(server, "exit");
    end(server);
    expect(await exited).toEqual([0, null]);
    await until(() => started.every((pid) => !isAlive(pid)));
    expect(
      rest()
        .split("\n")
        .filter((one) => one !== "" && !one.startsWith('{"jsonrpc":"2.0"') && !one.includes('"jsonrpc":"2.0"')),
    ).toEqual([]);
  });

  test("without a snapshot it serves its client all the same, and says what is missing", async () => {
    const empty = mkdtempSync(path.join(tmpdir(), "sluice-no-snapshot-"));
    try {
      const { server, send, line } = startServer({ SLUICE_CACHE: empty });
      send(initialize);
      const { result } = (await line()) as { result: { instructions: string } };
      const missing = "There is no snapshot for this version of Sluice in the cache.";
      expect(result.instructions.split("\n")[0]).toBe(
        `Python cannot be run here: ${missing} Run \`sluice prepare\` (\`npx sluice prepare\` where it is a dependency, \`npm run setup\` in a clone).`,
      );
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/call", params: { name: "store_data", arguments: { name: "rows", data: [1] } } });
      expect(await line()).toMatchObject({ id: 2, result: { structuredContent: { alias: "rows" } } });
      send({ id: 3, method: "tools/call", params: { name: "code_interpreter", arguments: cell("set_result(1)", ["rows"]) } });
      expect(await line()).toMatchObject({
        result: { isError: true, structuredContent: { status: "refused", error: { error_code: "SANDBOX_UNAVAILABLE", summary: missing } } },
      });
      server.stdin.end();
      expect(await once(server, "exit")).toEqual([0, null]);
    } finally {
      rmSync(empty, { recursive: true });
    }
  });

  test("refuses wrong usage with 2 and prints nothing on standard output", async () => {
    const server = spawn(sluice, ["mcp", "data.csv"], { stdio: ["pipe", "pipe", "pipe"] });
    const [out, err] = await Promise.all([server.stdout.toArray(), server.stderr.toArray(), once(server, "exit")]);
    expect([server.exitCode, out.join(""), err.join("")]).toEqual([
      2,
      "",
      'sluice: "data.csv" is no option; files and folders are given with --data PATH.\n  sluice mcp --help shows how it is called.\n',
    ]);
  });
});

describe("how long the sandboxes of clients over HTTP live", { timeout: HANG_MS }, () => {
  /** The clock stands still until a test says that time has gone by. */
  async function open(
    lifetimes: Partial<ConnectionLifetimes> = {},
    configuration: object = {},
  ): Promise<TestEndpoint & { pass(ms: number): void }> {
    const waiting = new Set<{ ms: number; work: () => void }>();
    const after: Schedule = (ms, work) => {
      const one = { ms, work };
      waiting.add(one);
      return () => void waiting.delete(one);
    };
    const opened = await openMcpEndpoint({ configuration, parts: () => ({ lifetimes, after }) });
    const pass = (ms: number): void => {
      for (const one of waiting) if (one.ms <= ms && waiting.delete(one)) one.work();
    };
    return { ...opened, pass };
  }

  const taken = ({ configured }: TestEndpoint): number => configured.runtime.gate.taken;

  test.each(generations)("a sandbox that is not used goes, and the next answer to a client of %s says so", async (generation) => {
    await using opened = await open();
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    const handle = session === undefined ? {} : { session };
    await client.call("code_interpreter", { ...cell("kept = 1\nset_result(kept)", ["rows"]), ...handle });
    expect(taken(opened)).toBe(1);
    opened.pass(defaultLifetimes.sandboxIdleMs);
    await until(() => taken(opened) === 0);
    const after = textOf(await client.call("code_interpreter", { ...cell("set_result(kept)", ["rows"]), ...handle }));
    expect(after).toMatchObject({
      status: "python_error",
      sandbox_note:
        "The sandbox was not used for 15 minutes: the sandbox was freed. Variables and files of earlier cells are gone, aliases are there.",
    });
    const edited = textOf(await client.call("python_code_edit", { edits: [{ oldText: "kept", newText: "len(rows)" }], ...handle }));
    expect(edited).toMatchObject({ status: "ok", result: 2 });
  });

  test("a call without a handle has a sandbox of its own and leaves none behind", async () => {
    const files = await openDataFiles({ paths: [path.join(import.meta.dirname, "../corpus")], maxFileBytes: 1e6 });
    await using opened = await openMcpEndpoint({ parts: () => ({ files }) });
    await using client = await openHttpClient("2026-07-28", opened.url);
    const alias = "bars";
    const first = textOf(await client.call("code_interpreter", cell("kept = 1\nset_result(kept)", [alias])));
    expect(first).toMatchObject({ status: "ok", result: 1, state_scope: "request" });
    expect(taken(opened)).toBe(0);
    const second = textOf(await client.call("code_interpreter", cell("set_result(kept)", [alias])));
    expect(second).toMatchObject({ status: "python_error", state_scope: "request" });
    expect(second["session"]).not.toBe(first["session"]);
    expect(taken(opened)).toBe(0);
  });

  test.each(generations)("a session of a client of %s that is not used goes with its data", async (generation) => {
    await using opened = await open();
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    expect(opened.endpoint.sessions).toBe(1);
    opened.pass(defaultLifetimes.sessionIdleMs);
    await until(() => opened.endpoint.sessions === 0);
    if (session === undefined) await expect(client.call("list_data")).rejects.toThrow("Session not found");
    else expect(textOf(await client.call("list_data", { session }))).toMatchObject({ error: { error_code: "SESSION_UNKNOWN" } });
  });

  test.each([
    ["when there are too many", { maxConnections: 2 }],
    ["when they keep too much", { maxBytes: 25_000 }],
  ])("the longest unused session of a tenant makes room %s, and none of another tenant", async (_when, lifetimes) => {
    await using opened = await open(lifetimes);
    await using other = await openHttpClient("2026-07-28", opened.url, { "x-tenant": "other" });
    const { session: kept } = textOf(await other.call("store_data", { name: "kept", data: "x".repeat(10_000) }));
    await using client = await openHttpClient("2026-07-28", opened.url);
    const handles: unknown[] = [];
    for (const name of ["one", "two", "three"])
      handles.push(textOf(await client.call("store_data", { name, data: "x".repeat(10_000) }))["session"]);
    expect(opened.endpoint.sessions).toBe(3);
    expect(textOf(await client.call("list_data", { session: handles[0] }))).toMatchObject({ error: { error_code: "SESSION_UNKNOWN" } });
    expect(textOf(await client.call("list_data", { session: handles[2] }))).toMatchObject({ data: [{ alias: "three" }] });
    expect(textOf(await other.call("list_data", { session: kept }))).toMatchObject({ data: [{ alias: "kept" }] });
  });

  test.each(generations)("a client of %s that vanishes in the middle of a cell frees its sandbox", async (generation) => {
    await using opened = await open();
    const client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    const handle = session === undefined ? {} : { session };
    const begun = Promise.withResolvers<void>();
    const running = client.call(
      "code_interpreter",
      { ...cell("print('begun', flush=True)\nwhile True: pass", ["rows"]), ...handle },
      {
        onprogress: ({ message }) => void (message === "begun" && begun.resolve()),
      },
    );
    running.catch(() => {});
    await begun.promise;
    expect(taken(opened)).toBe(1);
    await client.close();
    await until(() => (opened.pass(defaultLifetimes.vanishedMs), taken(opened) === 0));
    if (session === undefined) return;
    await using back = await openHttpClient(generation, opened.url);
    expect(textOf(await back.call("list_data", { session }))).toMatchObject({
      data: [{ alias: "rows" }],
      sandbox_note:
        "The client closed the connection and was gone for 30 s: the sandbox was freed. Variables and files of earlier cells are gone, aliases are there.",
    });
  });

  test.each(generations)("a client of %s that only cancels a call and comes back keeps its sandbox", async (generation) => {
    await using opened = await open();
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    const handle = session === undefined ? {} : { session };
    await client.call("code_interpreter", { ...cell("kept = 1\nset_result(kept)", ["rows"]), ...handle });
    const stop = new AbortController();
    const running = client.call(
      "code_interpreter",
      { ...cell("print('begun', flush=True)\nwhile True: pass", ["rows"]), ...handle },
      { signal: stop.signal, onprogress: ({ message }) => message === "begun" && stop.abort(new Error("enough")) },
    );
    await expect(running).rejects.toThrow("enough");
    // Cells of a session run one after the other: this one's answer says that the server has seen the other given up.
    const next = await client.call("code_interpreter", { ...cell("set_result(0)", ["rows"]), ...handle });
    expect(textOf(next)).not.toHaveProperty("sandbox_note");
    opened.pass(defaultLifetimes.vanishedMs);
    const after = textOf(await client.call("code_interpreter", { ...cell("set_result(kept)", ["rows"]), ...handle }));
    expect(after).toMatchObject({ status: "ok", result: 1 });
    expect(after).not.toHaveProperty("sandbox_note");
  });

  test("when somebody waits for a sandbox, the session that has run nothing for longest gives up its own and is told", async () => {
    await using opened = await open({}, { sandbox: { poolSize: 0, maxSandboxes: 2 } });
    const { gate } = opened.configured.runtime;
    const clients = await Promise.all(["a", "b", "c"].map(() => openHttpClient("2025-11-25", opened.url)));
    const [a, b, c] = clients as [TestClient, TestClient, TestClient];
    const run = async (client: TestClient, code: string): Promise<Record<string, unknown>> =>
      textOf(await client.call("code_interpreter", cell(code, ["rows"])));
    try {
      for (const client of clients) await client.call("store_data", { name: "rows", data: [1, 2] });
      for (const client of [a, b]) expect(await run(client, "kept = 1\nset_result(kept)")).toMatchObject({ status: "ok", result: 1 });
      opened.pass(defaultLifetimes.spareMs);
      expect(taken(opened)).toBe(2);
      expect(await run(c, "set_result(3)")).toMatchObject({ status: "ok", result: 3 });
      const kept = await run(b, "set_result(kept)");
      expect(kept).toMatchObject({ status: "ok", result: 1 });
      expect(kept).not.toHaveProperty("sandbox_note");
      // Nobody has rested long enough now: who waits is let in as soon as somebody has.
      const waiting = run(a, "set_result(kept)");
      await until(() => gate.waiting === 1);
      opened.pass(defaultLifetimes.spareMs);
      expect(await waiting).toMatchObject({
        status: "ok",
        result: 1,
        notes: [
          "The sandbox was replaced; the 1 earlier cell(s) were run again, so their variables and files are there. Files that failed cells had left are not.",
        ],
        sandbox_note:
          "Somebody waited for a sandbox, and this session's, which had run nothing for longest, was given up: files of earlier cells are gone, aliases are there. The next cell says what became of the variables.",
      });
      expect(await run(b, "set_result(kept)")).toMatchObject({ status: "ok", result: 1 });
    } finally {
      for (const client of clients) await client.close();
    }
  });

  test("a session does not stand in its own way where there is one sandbox", async () => {
    await using opened = await open({}, { sandbox: { poolSize: 0, maxSandboxes: 1 } });
    await using client = await openHttpClient("2025-11-25", opened.url);
    await client.call("store_data", { name: "rows", data: [{ n: 1 }, { n: 2 }] });
    await client.call("code_interpreter", cell("kept = 1\nset_result(kept)", ["rows"]));
    const reading = client.call("read_data", { alias: "rows" });
    await until(() => opened.configured.runtime.gate.waiting === 1);
    opened.pass(defaultLifetimes.spareMs);
    expect(textOf(await reading)).toMatchObject({ rows: [{ n: 1 }, { n: 2 }] });
    expect(textOf(await client.call("code_interpreter", cell("set_result(kept)", ["rows"])))).toMatchObject({ status: "ok", result: 1 });
  });
});

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openDataFiles } from "../src/data/open-data-files.ts";
import { cell, generations, openHttpClient, textOf, type TestClient } from "./fixtures/mcp-clients.ts";
import { defaultLifetimes, type Schedule, type ConnectionLifetimes } from "../src/server/mcp/mcp-parts.ts";
import { openMcpEndpoint, type TestEndpoint } from "./fixtures/open-mcp-endpoint.ts";

const HANG_MS = 240_000;
const sluice = path.resolve(import.meta.dirname, "../bin/sluice");
type Server = ChildProcessByStdio<Writable, Readable, Readable>;

/** A client of the 2025 protocol that reads raw lines, so that a test sees everything on standard output. */
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

/** All child processes, recursively. */
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

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(50);
}

describe("the shutdown of sluice mcp", { timeout: HANG_MS }, () => {
  const endings: readonly (readonly [string, (server: Server) => unknown])[] = [
    ["when its client closes standard input", (server) => server.stdin.end()],
    ["at SIGTERM", (server) => server.kill("SIGTERM")],
  ];

  test.each(endings)("kills a running cell and exits with 0, leaving no process, %s", async (_how, end) => {
    const { server, send, line, rest } = startServer();
    send(initialize);
    expect(await line()).toMatchObject({ id: 1, result: { protocolVersion: "2025-11-25", serverInfo: { name: "sluice" } } });
    send({ method: "notifications/initialized" });
    send({ id: 2, method: "tools/call", params: { name: "store_data", arguments: { name: "rows", data: [1] } } });
    expect(await line()).toMatchObject({ id: 2 });
    const args = cell("print('running', flush=True)\nwhile True: pass", ["rows"]);
    send({ id: 3, method: "tools/call", params: { name: "code_interpreter", arguments: args, _meta: { progressToken: 7 } } });
    let message: unknown = null;
    while (message !== "running") message = ((await line())["params"] as { message?: string }).message;
    const started = descendants(server.pid!);
    expect(started.length).toBeGreaterThan(0);
    const exited = once(server, "exit");
    end(server);
    expect(await exited).toEqual([0, null]);
    await until(() => started.every((pid) => !isAlive(pid)));
    expect(
      rest()
        .split("\n")
        .filter((output) => output !== "" && !output.startsWith('{"jsonrpc":"2.0"') && !output.includes('"jsonrpc":"2.0"')),
    ).toEqual([]);
  });

  test("serves its client without a snapshot and says what is missing", async () => {
    const empty = mkdtempSync(path.join(tmpdir(), "sluice-no-snapshot-"));
    try {
      const { server, send, line } = startServer({ SLUICE_CACHE: empty });
      send(initialize);
      const { result } = (await line()) as { result: { instructions: string } };
      const missing = "There is no snapshot for this version of Sluice in the cache.";
      expect(result.instructions.split("\n")[0]).toBe(
        `Python is not available here: ${missing} Run \`sluice prepare\` (\`npx sluice prepare\` where it is a dependency, \`npm run setup\` in a clone).`,
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
      'sluice: unexpected argument "data.csv". Use --data PATH for files and folders.\n  Run sluice mcp --help for usage.\n',
    ]);
  });
});

describe("the lifetime of sandboxes and connections over HTTP", { timeout: HANG_MS }, () => {
  /** Timers fire only when a test calls `pass`. */
  async function open(
    lifetimes: Partial<ConnectionLifetimes> = {},
    configuration: object = {},
  ): Promise<TestEndpoint & { pass(ms: number): void }> {
    const timers = new Set<{ ms: number; work: () => void }>();
    const after: Schedule = (ms, work) => {
      const timer = { ms, work };
      timers.add(timer);
      return () => void timers.delete(timer);
    };
    const opened = await openMcpEndpoint({ configuration, parts: () => ({ lifetimes, after }) });
    const pass = (ms: number): void => {
      for (const timer of timers) if (timer.ms <= ms && timers.delete(timer)) timer.work();
    };
    return { ...opened, pass };
  }

  const taken = ({ configured }: TestEndpoint): number => configured.runtime.gate.taken;

  test.each(generations)("frees an idle sandbox and says so in the next result of a client of %s", async (generation) => {
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
        "The sandbox was freed because it was unused for 15 minutes. Variables and files of earlier cells are lost; aliases are kept.",
    });
    const edited = textOf(await client.call("python_code_edit", { edits: [{ oldText: "kept", newText: "len(rows)" }], ...handle }));
    expect(edited).toMatchObject({ status: "ok", result: 2 });
  });

  test("gives a call without a handle its own sandbox and frees it afterwards", async () => {
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

  test.each(generations)("closes an idle connection of a client of %s with its data", async (generation) => {
    await using opened = await open();
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    expect(opened.endpoint.connections).toBe(1);
    opened.pass(defaultLifetimes.connectionIdleMs);
    await until(() => opened.endpoint.connections === 0);
    if (session === undefined) await expect(client.call("list_data")).rejects.toThrow("Session not found");
    else expect(textOf(await client.call("list_data", { session }))).toMatchObject({ error: { error_code: "SESSION_UNKNOWN" } });
  });

  test.each([
    ["when there are too many", { maxConnections: 2 }],
    ["when they hold too much data", { maxBytes: 25_000 }],
  ])("closes the least recently used connection of the same tenant %s", async (_when, lifetimes) => {
    await using opened = await open(lifetimes);
    await using other = await openHttpClient("2026-07-28", opened.url, { "x-tenant": "other" });
    const { session: kept } = textOf(await other.call("store_data", { name: "kept", data: "x".repeat(10_000) }));
    await using client = await openHttpClient("2026-07-28", opened.url);
    const handles: unknown[] = [];
    for (const name of ["one", "two", "three"])
      handles.push(textOf(await client.call("store_data", { name, data: "x".repeat(10_000) }))["session"]);
    expect(opened.endpoint.connections).toBe(3);
    expect(textOf(await client.call("list_data", { session: handles[0] }))).toMatchObject({ error: { error_code: "SESSION_UNKNOWN" } });
    expect(textOf(await client.call("list_data", { session: handles[2] }))).toMatchObject({ data: [{ alias: "three" }] });
    expect(textOf(await other.call("list_data", { session: kept }))).toMatchObject({ data: [{ alias: "kept" }] });
  });

  test.each(generations)("frees the sandbox of a client of %s that disconnects while a cell runs", async (generation) => {
    await using opened = await open();
    const client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    const handle = session === undefined ? {} : { session };
    const running = Promise.withResolvers<void>();
    const call = client.call(
      "code_interpreter",
      { ...cell("print('running', flush=True)\nwhile True: pass", ["rows"]), ...handle },
      {
        onprogress: ({ message }) => void (message === "running" && running.resolve()),
      },
    );
    call.catch(() => {});
    await running.promise;
    expect(taken(opened)).toBe(1);
    await client.close();
    await until(() => (opened.pass(defaultLifetimes.disconnectGraceMs), taken(opened) === 0));
    if (session === undefined) return;
    await using returned = await openHttpClient(generation, opened.url);
    expect(textOf(await returned.call("list_data", { session }))).toMatchObject({
      data: [{ alias: "rows" }],
      sandbox_note:
        "The sandbox was freed because the client closed the connection and did not return within 30 s. Variables and files of earlier cells are lost; aliases are kept.",
    });
  });

  test.each(generations)("keeps the sandbox of a client of %s that cancels a call and makes another", async (generation) => {
    await using opened = await open();
    await using client = await openHttpClient(generation, opened.url);
    const { session } = textOf(await client.call("store_data", { name: "rows", data: [1, 2] }));
    const handle = session === undefined ? {} : { session };
    await client.call("code_interpreter", { ...cell("kept = 1\nset_result(kept)", ["rows"]), ...handle });
    const stop = new AbortController();
    const running = client.call(
      "code_interpreter",
      { ...cell("print('running', flush=True)\nwhile True: pass", ["rows"]), ...handle },
      { signal: stop.signal, onprogress: ({ message }) => message === "running" && stop.abort(new Error("enough")) },
    );
    await expect(running).rejects.toThrow("enough");
    // Cells of a connection run one at a time, so this result means that the server has handled the cancellation.
    const next = await client.call("code_interpreter", { ...cell("set_result(0)", ["rows"]), ...handle });
    expect(textOf(next)).not.toHaveProperty("sandbox_note");
    opened.pass(defaultLifetimes.disconnectGraceMs);
    const after = textOf(await client.call("code_interpreter", { ...cell("set_result(kept)", ["rows"]), ...handle }));
    expect(after).toMatchObject({ status: "ok", result: 1 });
    expect(after).not.toHaveProperty("sandbox_note");
  });

  test("frees the longest idle sandbox when another call waits for one, and notes it in the next result", async () => {
    await using opened = await open({}, { sandbox: { poolSize: 0, maxSandboxes: 2 } });
    const { gate } = opened.configured.runtime;
    const clients = await Promise.all(["a", "b", "c"].map(() => openHttpClient("2025-11-25", opened.url)));
    const [a, b, c] = clients as [TestClient, TestClient, TestClient];
    const run = async (client: TestClient, code: string): Promise<Record<string, unknown>> =>
      textOf(await client.call("code_interpreter", cell(code, ["rows"])));
    try {
      for (const client of clients) await client.call("store_data", { name: "rows", data: [1, 2] });
      for (const client of [a, b]) expect(await run(client, "kept = 1\nset_result(kept)")).toMatchObject({ status: "ok", result: 1 });
      opened.pass(defaultLifetimes.reclaimAfterMs);
      expect(taken(opened)).toBe(2);
      expect(await run(c, "set_result(3)")).toMatchObject({ status: "ok", result: 3 });
      const kept = await run(b, "set_result(kept)");
      expect(kept).toMatchObject({ status: "ok", result: 1 });
      expect(kept).not.toHaveProperty("sandbox_note");
      // No sandbox has been idle for long enough yet. The waiting call gets one as soon as that changes.
      const waiting = run(a, "set_result(kept)");
      await until(() => gate.waiting === 1);
      opened.pass(defaultLifetimes.reclaimAfterMs);
      expect(await waiting).toMatchObject({
        status: "ok",
        result: 1,
        notes: [
          "The sandbox was replaced. The 1 earlier cell(s) were run again, so their variables and files are available. Files left by failed cells are lost.",
        ],
        sandbox_note:
          "This idle sandbox was freed because another call needed one. Files of earlier cells are lost; aliases are kept. The next cell reports what happened to the variables.",
      });
      expect(await run(b, "set_result(kept)")).toMatchObject({ status: "ok", result: 1 });
    } finally {
      for (const client of clients) await client.close();
    }
  });

  test("a connection can read data while it holds the only sandbox", async () => {
    await using opened = await open({}, { sandbox: { poolSize: 0, maxSandboxes: 1 } });
    await using client = await openHttpClient("2025-11-25", opened.url);
    await client.call("store_data", { name: "rows", data: [{ n: 1 }, { n: 2 }] });
    await client.call("code_interpreter", cell("kept = 1\nset_result(kept)", ["rows"]));
    const reading = client.call("read_data", { alias: "rows" });
    await until(() => opened.configured.runtime.gate.waiting === 1);
    opened.pass(defaultLifetimes.reclaimAfterMs);
    expect(textOf(await reading)).toMatchObject({ rows: [{ n: 1 }, { n: 2 }] });
    expect(textOf(await client.call("code_interpreter", cell("set_result(kept)", ["rows"])))).toMatchObject({ status: "ok", result: 1 });
  });
});

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { howToConnect } from "../src/protocol/connect-model.ts";
import type { TurnDocument } from "../src/protocol/http-turns.ts";
import { endlessScript, notesServer, readEvents } from "./fixtures/open-test-server.ts";

const sluice = path.resolve(import.meta.dirname, "../bin/sluice");

describe("sluice serve", { timeout: 240_000 }, () => {
  let directory: string;
  let child: ChildProcess | null = null;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "ss-"));
  });
  afterEach(() => {
    if (child?.exitCode === null) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  });

  const environment = (): NodeJS.ProcessEnv => ({
    ...process.env,
    SLUICE_DATA: path.join(directory, "data"),
    SLUICE_MODEL: "",
    TMPDIR: directory,
  });

  interface Served {
    readonly url: string;
    readonly token: string;
    readonly stdout: () => string;
    readonly stderr: () => string;
    end(signal: NodeJS.Signals): Promise<number | null>;
    request(pathname: string, body?: unknown): Promise<Response>;
  }

  async function serve(args: string[] = []): Promise<Served> {
    const started = spawn(sluice, ["serve", "--port", "0", ...args], { cwd: directory, env: environment(), detached: true });
    child = started;
    let [stdout, stderr] = ["", ""];
    started.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
    await new Promise<void>((resolve, reject) => {
      started.stdout.on("data", (text: Buffer) => {
        stdout += text.toString();
        if (/^}\n\n$/m.test(stdout)) resolve();
      });
      started.once("exit", () => reject(new Error(`it ended: ${stderr}`)));
    });
    const url = /^address: (.*)$/m.exec(stdout)![1]!;
    const token = /Bearer ([\w-]{43})$/m.exec(stdout)?.[1] ?? "";
    return {
      url,
      token,
      stdout: () => stdout,
      stderr: () => stderr,
      async end(signal) {
        const ended = new Promise<number | null>((resolve) => started.once("exit", (status) => resolve(status)));
        started.kill(signal);
        return await ended;
      },
      request: (pathname, body) =>
        fetch(`${url}${pathname}`, {
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
        }),
    };
  }

  /** Processes with the directory in their command line, and files in the run directory. */
  function listLeftovers(): { processes: string[]; files: string[] } {
    const processes = readdirSync("/proc").filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(directory);
      } catch {
        return false;
      }
    });
    const run = path.join(directory, `sluice-${process.getuid!()}`);
    return { processes, files: readdirSync(run) };
  }

  /** Polls, because the reaper outlives the server for a moment. */
  async function untilNothingIsLeft(): Promise<void> {
    await expect.poll(listLeftovers, { timeout: 60_000 }).toEqual({ processes: [], files: [] });
  }

  async function beginEndless(server: Served): Promise<string> {
    const turn = (await (await server.request("/api/turns", { question: "Go." })).json()) as TurnDocument;
    for await (const { type } of readEvents(await server.request(`/api/turns/${turn.turnId}/events`))) if (type === "cell-output") break;
    return turn.turnId;
  }
  function configure(server: object = {}): void {
    writeFileSync(path.join(directory, "script.json"), JSON.stringify(endlessScript));
    const notes = { command: process.execPath, args: [notesServer] };
    writeFileSync(
      path.join(directory, "sluice.config.json"),
      JSON.stringify({ mcpServers: { notes }, model: "script:script.json", server }),
    );
  }

  test("answers the question of the bundled sample without configuration or key, and prints how to connect", async () => {
    const server = await serve();
    const { driver, model, samples } = (await (await server.request("/api/info")).json()) as {
      driver: string;
      model: string;
      samples: { question: string }[];
    };
    expect(server.stdout()).toContain(
      `configuration: no sluice.config.json found; using the bundled sample\naddress: ${server.url}\nsandbox: ${driver}\nmodel: demo. No model is connected. The demo answers its sample question only.\n\n${howToConnect}\n`,
    );
    // Standard output is not a terminal here, and may be kept as a log.
    expect(`${server.stdout()}${server.stderr()}`).not.toContain("/login?code=");
    expect(server.stdout()).toContain("\nTo log in with a browser, run on this machine: sluice login-link\n");
    const linked = (...args: string[]) =>
      spawnSync(sluice, ["login-link", ...args], { cwd: directory, env: environment(), encoding: "utf8" });
    const { stdout: link, stderr: linkErrors } = linked();
    expect([link, linkErrors]).toEqual([expect.stringMatching(/^http:.*\/login\?code=[\w-]{43}\n$/), ""]);
    expect(await (await fetch(link.trim())).text()).toContain("as the tenant <strong>local</strong>");
    expect(linked("--tenant", "x")).toMatchObject({ status: 2, stderr: expect.stringContaining('Tenants: "local".') });
    const snippet = JSON.parse(/^\{[\s\S]*^\}/m.exec(server.stdout())![0]) as unknown;
    expect(snippet).toEqual({ mcpServers: { sluice: { url: `${server.url}/mcp`, headers: { Authorization: `Bearer ${server.token}` } } } });
    expect([model, statSync(path.join(directory, "data/artifacts/server-token")).mode & 0o777]).toEqual(["demo", 0o600]);
    const turn = (await (await server.request("/api/turns", { question: samples[0]!.question, wait: true })).json()) as TurnDocument;
    expect([turn.stopReason, turn.result!.artifacts.map(({ kind }) => kind)]).toEqual(["complete_answer", ["image", "chart"]]);
    const page = await fetch(server.url, { headers: { authorization: `Bearer ${server.token}` } });
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).not.toMatch(/script-src[^;]*unsafe/);
    expect(await server.end("SIGTERM")).toBe(0);
    await untilNothingIsLeft();
    expect(linked()).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("No server that needs a login runs on the data directory"),
    });
    for (const line of server.stderr().trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ level: "info" });
  });

  test("prints a login link to a terminal, for the first tenant only", async () => {
    configure();
    const file = path.join(directory, "sluice.config.json");
    const configuration = JSON.parse(readFileSync(file, "utf8")) as object;
    const tokens = ["ann", "bob"].map((tenant, at) => ({ tenant, sha256: String(at).repeat(64) }));
    writeFileSync(file, JSON.stringify({ ...configuration, auth: { tokens } }));
    // `script` gives the command a terminal.
    const started = spawn("script", ["-qec", `${sluice} serve --port 0`, "/dev/null"], {
      cwd: directory,
      env: environment(),
      detached: true,
    });
    child = started;
    let shown = "";
    await new Promise<void>((resolve, reject) => {
      started.stdout.on("data", (text: Buffer) => {
        shown += text.toString().replaceAll("\r", "");
        if (/^}\n\n$/m.test(shown)) resolve();
      });
      started.once("exit", () => reject(new Error(`it ended: ${shown}`)));
    });
    expect(shown).toContain("\nOpen in a browser (works once), as ann:\n  http://127.0.0.1:");
    expect(shown.match(/\/login\?code=/g)).toHaveLength(1);
    expect(shown).toContain("\nFor another tenant: sluice login-link --tenant NAME\n");
    const { stdout: link } = spawnSync(sluice, ["login-link", "--tenant", "bob"], { cwd: directory, env: environment(), encoding: "utf8" });
    expect(await (await fetch(link.trim())).text()).toContain("as the tenant <strong>bob</strong>");
    const ended = new Promise((resolve) => started.once("exit", resolve));
    process.kill(-started.pid!, "SIGTERM");
    await ended;
  });

  test("stops on SIGTERM: ends turns that run too long with a result, and leaves nothing behind", async () => {
    configure({ drainMs: 300 });
    const server = await serve();
    const turnId = await beginEndless(server);
    expect(await server.end("SIGTERM")).toBe(0);
    await untilNothingIsLeft();
    const again = await serve();
    expect(again.token).toBe(server.token);
    const turn = (await (await again.request(`/api/turns/${turnId}`)).json()) as TurnDocument;
    expect([turn.status, turn.stopReason, turn.result!.gaps.map(({ code }) => code)]).toEqual(["ended", "aborted", ["aborted"]]);
    expect(await again.end("SIGINT")).toBe(0);
  });

  test("at the next start, ends a turn that was running when the server was killed", async () => {
    configure();
    const server = await serve();
    const turnId = await beginEndless(server);
    await server.end("SIGKILL");
    const again = await serve();
    const turn = (await (await again.request(`/api/turns/${turnId}`)).json()) as TurnDocument;
    const detail = "The server stopped during this turn, so the answer is incomplete. Ask again.";
    expect([turn.status, turn.stopReason, turn.result!.answer]).toEqual(["ended", "aborted", detail]);
    expect(again.stderr()).toContain('"event":"turns_recovered","turns":1');
    expect(await again.end("SIGTERM")).toBe(0);
    await untilNothingIsLeft();
  });

  test("warns about --no-auth, and refuses it on addresses that other machines can reach", async () => {
    configure();
    const server = await serve(["--no-auth"]);
    expect(server.stdout()).toContain(
      "--no-auth: NO TOKEN IS REQUIRED. Every program and every user of this machine can read and run everything here.",
    );
    expect((await fetch(`${server.url}/api/info`)).status).toBe(200);
    await server.end("SIGTERM");
    for (const [args, said] of [
      [["--no-auth", "--host", "0.0.0.0"], "--no-auth works only with 127.0.0.1: everyone who can reach 0.0.0.0 would have access."],
      [["--no-auth", "--public-url", "https://sluice.example"], "--no-auth cannot be combined with a public address"],
      [
        ["--public-url", "sluice.example/path"],
        '--public-url must be an origin such as https://sluice.example, not "sluice.example/path".',
      ],
    ] as const) {
      const refused = spawnSync(sluice, ["serve", ...args], { cwd: directory, env: environment(), encoding: "utf8" });
      expect([refused.status, refused.stdout]).toEqual([2, ""]);
      expect(refused.stderr).toContain(said);
    }
  });

  test("exits with 2 for a port that is in use or invalid, and with 3 without a sandbox", async () => {
    configure();
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    const run = (args: string[], env: NodeJS.ProcessEnv = {}): { status: number | null; stderr: string } =>
      spawnSync(sluice, ["serve", ...args], { cwd: directory, env: { ...environment(), ...env }, encoding: "utf8" });
    const busy = run(["--port", String(port)]);
    taken.close();
    expect(busy.status).toBe(2);
    expect(busy.stderr).toContain(`The server cannot listen on 127.0.0.1:${port}: the port is in use.`);
    expect(run(["--port", "http"])).toMatchObject({ status: 2 });
    const none = run(["--port", "0"], { SLUICE_CACHE: path.join(directory, "empty") });
    expect(none.status).toBe(3);
    expect(none.stderr).toContain("There is no snapshot for this version of Sluice in the cache.");
  });
});

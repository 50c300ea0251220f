import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as sendRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";

const sluice = path.resolve(import.meta.dirname, "../bin/sluice");
const FILES = 400;

/** What strangers send before they fall silent: nothing, half a header, requests without or with a wrong token, half a body. */
const openings = [
  "",
  "GET /api/info HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
  "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET /api/info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n",
  "POST /api/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
];

test("serves an authenticated neighbour while strangers open connections without end", { timeout: 240_000 }, async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "ss-"));
  writeFileSync(path.join(directory, "sluice.config.json"), "{}");
  const child = spawn("bash", ["-c", `ulimit -n ${FILES}; exec "${sluice}" serve --port 0`], {
    cwd: directory,
    env: { ...process.env, SLUICE_DATA: path.join(directory, "data"), SLUICE_MODEL: "", TMPDIR: directory },
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const strangers = new Set<Socket>();
  try {
    let [stdout, stderr] = ["", ""];
    child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
    await new Promise<void>((resolve, reject) => {
      child.stdout.on("data", (text: Buffer) => {
        stdout += text.toString();
        if (/^}\n\n$/m.test(stdout)) resolve();
      });
      void ended.then(() => reject(new Error(`it ended: ${stderr}`)));
    });
    const port = Number(/^address: .*:(\d+)$/m.exec(stdout)![1]);
    const token = /Bearer ([\w-]{43})$/m.exec(stdout)![1]!;

    /** Sends a request on a connection of its own, again if a burst of strangers pushed it out before it was read. */
    async function ask(pathname: string, agent?: Agent): Promise<{ status: number | undefined; body: string }> {
      for (;;) {
        try {
          return await new Promise((resolve, reject) => {
            const headers = { authorization: `Bearer ${token}` };
            const sent = sendRequest({ port, path: pathname, headers, agent: agent ?? new Agent() }, (response) => {
              let body = "";
              response.on("data", (text: Buffer) => (body += text.toString()));
              response.once("end", () => resolve({ status: response.statusCode, body }));
              response.once("error", reject);
            });
            sent.once("error", reject);
            sent.end();
          });
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
        }
      }
    }

    let cut = 0;
    let isFlooding = true;
    const open = (index: number): void => {
      const socket = connect(port, "127.0.0.1", () => socket.write(openings[index % openings.length]!));
      strangers.add(socket);
      socket.resume();
      socket.once("error", () => {});
      socket.once("close", () => {
        strangers.delete(socket);
        cut += 1;
        if (isFlooding) open(index);
      });
    };
    using agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
      [Symbol.dispose](this: Agent) {
        this.destroy();
      },
    });
    expect((await ask("/api/info", agent)).status).toBe(200); // a connection that is known before the flood
    for (let index = 0; index < 600; index += 1) open(index);
    const hasCut = (count: number): boolean => cut >= count;
    const until = async (count: number): Promise<void> => {
      while (!hasCut(count)) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await until(3000); // without a limit, only the time limit for headers would end them, a few hundred at a time
    for (let round = 1; round <= 10; round += 1) {
      await until(3000 + round * 100);
      expect([(await ask("/api/info")).status, (await ask("/api/conversations", agent)).status]).toEqual([200, 200]);
    }
    isFlooding = false;
    for (const socket of strangers) socket.destroy();
    const { body } = await ask("/metrics");
    expect(Number(/^sluice_connections_cut_total (\d+)$/m.exec(body)![1])).toBeGreaterThan(1000);
    expect(stderr).not.toMatch(/EMFILE|request_failed|too many open files/);
  } finally {
    for (const socket of strangers) socket.destroy();
    child.kill("SIGTERM");
    await ended;
    rmSync(directory, { recursive: true, force: true });
  }
});

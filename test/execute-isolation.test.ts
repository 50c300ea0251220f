import path from "node:path";
import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { defaultExecuteLimits, type Script } from "../src/execute/engine.ts";
import { createChildCommand, type ChildCommand } from "../src/execute/monty/child-command.ts";
import { openMontyChild } from "../src/execute/monty/open-monty-child.ts";

/** Runs a program in the place of Monty: what a script could do that broke out of the interpreter. */
async function runInChild(isolation: "namespaces" | "process-only", program: string): Promise<unknown> {
  const command = await createChildCommand({ isolation, bwrapPath: "bwrap" });
  const preface = 'import { writeSync } from "node:fs";\nconst say = (value) => writeSync(3, JSON.stringify(value));\n';
  const args = [...command.arguments(500_000_000).slice(0, -1), preface + program];
  const child = spawn(command.file, args, {
    cwd: command.cwd,
    env: {},
    stdio: ["ignore", "ignore", "pipe", "pipe", ...(isolation === "namespaces" ? (["pipe", "pipe"] as const) : [])],
  });
  ((child.stdio as readonly unknown[])[5] as Duplex | undefined)?.end(command.seccomp);
  const [said, stderr] = await Promise.all([text(child.stdio[3] as Duplex), text(child.stderr!)]);
  return said === "" ? stderr : JSON.parse(said);
}

describe("a child in namespaces", () => {
  it("sees nothing but Node, its libraries and Monty", async () => {
    const program = `import { readdirSync } from "node:fs";
      const list = (path) => { try { return readdirSync(path).sort(); } catch (error) { return error.code; } };
      say({ root: list("/").filter((name) => !/^(lib|lib64|usr)$/.test(name)), app: list("/app"), modules: list("/app/node_modules/@pydantic").map((name) => name.split("-")[0]),
        etc: list("/etc"), proc: list("/proc"), dev: list("/dev"), home: list("/root"), tmp: list("/tmp"), work: list("/work") });`;
    expect(await runInChild("namespaces", program)).toEqual({
      root: ["app"],
      app: ["node", "node_modules"],
      modules: ["monty", "monty"],
      ...{ etc: "ENOENT", proc: "ENOENT", dev: "ENOENT", home: "ENOENT", tmp: "ENOENT", work: "ENOENT" },
    });
  });

  it("cannot write anywhere", async () => {
    const program = `import { writeFileSync, mkdirSync } from "node:fs";
      const attempt = (work) => { try { work(); return "done"; } catch (error) { return error.code; } };
      say([attempt(() => writeFileSync("/x", "1")), attempt(() => mkdirSync("/tmp")), attempt(() => writeFileSync("/app/node_modules/@pydantic/monty/wrapper.js", "1"))]);`;
    expect(await runInChild("namespaces", program)).toEqual(["EROFS", "EROFS", "EROFS"]);
  });

  it("has no network, not even to this machine", async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const program = `import net from "node:net"; import os from "node:os";
      const attempt = (host) => new Promise((resolve) => net.connect(${port}, host).on("connect", () => resolve("connected")).on("error", (error) => resolve(error.code)));
      let interfaces; try { interfaces = Object.keys(os.networkInterfaces()).filter((name) => name !== "lo"); } catch { interfaces = []; }
      say([await attempt("127.0.0.1"), await attempt("203.0.113.1"), interfaces]);`;
    const [here, there, interfaces] = (await runInChild("namespaces", program)) as [string, string, string[]];
    server.close();
    expect([here, there]).toEqual(["EPERM", "EPERM"]); // the filter of system calls knows no sockets; without it, the namespace has no route
    expect(interfaces).toEqual([]);
  });

  it("runs as nobody, sees only its own process and cannot start others", async () => {
    const program = `import { spawnSync } from "node:child_process";
      const attempt = (pid) => { try { process.kill(pid, 0); return "there"; } catch (error) { return error.code; } };
      say({ uid: process.getuid(), pid: process.pid, host: attempt(${process.pid}), shell: spawnSync("/bin/sh", ["-c", "true"]).error?.code });`;
    expect(await runInChild("namespaces", program)).toEqual({ uid: 65534, pid: 2, host: "ESRCH", shell: "ENOENT" });
  });
});

describe.each(["namespaces", "process-only"] as const)("a child (%s)", (isolation) => {
  it("has no environment, and no descriptor except its channel", async () => {
    const program = `import { fstatSync } from "node:fs";
      const isSocket = (fd) => { try { return fstatSync(fd).isSocket(); } catch { return false; } };
      const open = []; for (let fd = 3; fd < 256; fd += 1) if (isSocket(fd)) open.push(fd);
      say({ env: Object.keys(process.env).filter((name) => name !== "PWD"), open, execArgv: process.execArgv.includes("--jitless") });`;
    expect(await runInChild(isolation, program)).toEqual({ env: [], open: [3], execArgv: true });
  });

  it("cannot use more memory than its limit", async () => {
    const program = `const kept = []; try { for (let i = 0; i < 20; i += 1) kept.push(Buffer.alloc(100_000_000, 1)); say("took it"); } catch (error) { say(error.name); }`;
    expect(await runInChild(isolation, program)).not.toBe("took it");
  });
});

describe.each(["namespaces", "process-only"] as const)("a host that inherited a descriptor (%s)", (isolation) => {
  it("does not pass it on to children", async () => {
    const host = `import { readdirSync, readFileSync, readlinkSync } from "node:fs";
      import { createMontyEngine } from ${JSON.stringify(path.join(import.meta.dirname, "../src/execute/monty/create-monty-engine.ts"))};
      const below = (pid) => readdirSync("/proc/" + pid + "/task").flatMap((task) => readFileSync("/proc/" + pid + "/task/" + task + "/children", "utf8").split(" ").filter(Boolean));
      const all = (pid) => below(pid).flatMap((child) => [child, ...all(child)]);
      const holds = (pid, link) => readdirSync("/proc/" + pid + "/fd").some((fd) => { try { return readlinkSync("/proc/" + pid + "/fd/" + fd) === link; } catch { return false; } });
      const engine = createMontyEngine({ poolSize: 1, isolation: ${JSON.stringify(isolation)} });
      await engine.warm();
      const link = readlinkSync("/proc/self/fd/9");
      const running = all(process.pid).filter((pid) => readlinkSync("/proc/" + pid + "/exe").endsWith("/node"));
      console.log(JSON.stringify({ host: holds("self", link), children: running.map((pid) => holds(pid, link)) }));
      await engine.close();`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", host], {
      stdio: ["ignore", "pipe", "inherit", "ignore", "ignore", "ignore", "ignore", "ignore", "ignore", "pipe"],
    });
    expect(JSON.parse(await text(child.stdout!))).toEqual({ host: true, children: [false] });
  });
});

describe("a child that sends", () => {
  const script: Script = {
    code: "1",
    limits: { ...defaultExecuteLimits, totalMs: 20_000 },
    callTool: async () => ({ ok: true, json: "1" }),
  };
  const header = `const { writeSync, readSync } = require("node:fs");
    const pack = (header, body = "") => { const bytes = Buffer.from("1234" + JSON.stringify(header) + "\\n" + body); bytes.writeUInt32BE(bytes.length - 4); return bytes; };
    const send = (header, body) => writeSync(3, pack(header, body));
    send({ type: "ready" }); readSync(3, Buffer.alloc(65536)); `;
  const fake = (program: string): ChildCommand => ({
    isolation: "process-only",
    file: process.execPath,
    cwd: "/",
    seccomp: null,
    arguments: () => ["--eval", `${header}${program}; setInterval(() => {}, 1000);`],
  });

  it.each<[title: string, program: string, detail: string]>([
    ["bytes that are not a frame", `writeSync(3, "hello, this is no frame")`, "sent a frame of 1751477356 bytes"],
    ["a frame over the limit", `writeSync(3, Buffer.from([255, 0, 0, 0, 123, 125]))`, "sent a frame of 4278190080 bytes"],
    ["a frame without a header", `writeSync(3, Buffer.from([0, 0, 0, 2, 123, 125]))`, "sent a frame without a header"],
    ["a header that is not JSON", `writeSync(3, Buffer.from([0, 0, 0, 3, 123, 123, 10]))`, expect.stringContaining("JSON") as string],
    ["an unknown type", `send({ type: "boo" })`, "sent a frame of unknown type"],
    ["a second ready", `send({ type: "ready" })`, "sent a frame ready out of place"],
    ["a wait without pending calls", `send({ type: "wait" })`, "sent a frame wait without pending calls"],
    ["a call out of order", `send({ type: "call", id: 5, name: "x" }, "{}")`, "sent a call with an id out of order"],
    ["a call without a name", `send({ type: "call", id: 1 }, "{}")`, "sent a call without id and name"],
    [
      "output while it waits",
      `writeSync(3, Buffer.concat([pack({ type: "call", id: 1, name: "x" }, "{}"), pack({ type: "wait" }), pack({ type: "print" }, "x")]))`,
      "sent a frame print while waiting for replies",
    ],
    ["an invalid end", `send({ type: "done", status: "fine" })`, "sent an invalid frame done"],
  ])("%s is killed", async (_, program, detail) => {
    const child = await openMontyChild(fake(program), 100_000_000);
    const { end } = await child.run(script);
    expect(end).toEqual({
      kind: "crashed",
      detail: typeof detail === "string" ? `The interpreter's process was killed because it ${detail}.` : detail,
    });
    expect(child.isAlive()).toBe(false);
    await child.kill();
  });

  it("a frame while no script runs is killed too", async () => {
    const child = await openMontyChild(fake(`send({ type: "done", status: "value" }, "1"); send({ type: "print" }, "x")`), 100_000_000);
    expect((await child.run(script)).end).toEqual({ kind: "value", json: "1" });
    await expect.poll(() => child.isAlive()).toBe(false);
    await child.kill();
  });

  it("more printed text than the limit has it cut", async () => {
    const program = `for (let i = 0; i < 50; i += 1) send({ type: "print" }, "x".repeat(10000)); send({ type: "done", status: "value" }, "1")`;
    const child = await openMontyChild(fake(program), 100_000_000);
    expect((await child.run(script)).prints).toHaveLength(defaultExecuteLimits.printBytes);
    await child.kill();
  });
});

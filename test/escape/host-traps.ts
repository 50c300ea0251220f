import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket, type Socket as UdpSocket, type SocketType } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, connect, type AddressInfo, type Server } from "node:net";
import os from "node:os";
import path from "node:path";

/** Secrets, processes and servers on the host that a sandbox must not reach. The host counts every access; a sandbox's own report is never trusted. */
export interface HostTraps extends AsyncDisposable {
  /** Contained in a file, an environment variable and a process of the host. It must never appear in the output of a sandbox. */
  readonly secret: string;
  readonly directory: string;
  readonly secretFile: string;
  readonly secretVariable: string;
  /** A process of the host with the secret in its arguments and its environment. */
  readonly process: { readonly pid: number; isAlive(): boolean };
  readonly httpPort: number;
  readonly tcp4Port: number;
  readonly tcp6Port: number | null;
  readonly udp4Port: number;
  readonly udp6Port: number | null;
  readonly unixPath: string;
  readonly abstractName: string;
  /** Addresses of this machine other than loopback. */
  readonly addresses: readonly string[];
  /** Connections, requests and datagrams that arrived, by trap. */
  reached(): Record<string, number>;
  /** Accesses every trap from the host, to prove that the traps count, then resets the counts. */
  checkThatTrapsCount(): Promise<void>;
  /** Names in the host's directory. A sandbox must not add any. */
  files(): Promise<string[]>;
}

export async function openHostTraps(): Promise<HostTraps> {
  const secret = `canary-${randomBytes(16).toString("hex")}`;
  const secretVariable = "SLUICE_ESCAPE_CANARY";
  const directory = await mkdtemp(path.join(os.tmpdir(), "escape-"));
  const secretFile = path.join(directory, "secret.txt");
  await writeFile(secretFile, secret, { mode: 0o644 });
  process.env[secretVariable] = secret; // set before any sandbox process starts, so that an inherited environment would show it

  const counts: Record<string, number> = { http: 0, tcp4: 0, tcp6: 0, udp4: 0, udp6: 0, unixPath: 0, abstract: 0 };
  const count = (name: string) => (): void => {
    counts[name] = (counts[name] ?? 0) + 1;
  };
  const listening: { close(): unknown }[] = [];
  const tcp = async (name: string, where: object): Promise<number | null> => {
    const server = createServer((socket) => {
      counts[name] = (counts[name] ?? 0) + 1;
      socket.on("error", () => {}).end();
    });
    return await listen(server, where, listening);
  };
  const udp = async (name: string, type: SocketType, address: string): Promise<number | null> => {
    const socket = createSocket(type, count(name));
    return await bind(socket, address, listening);
  };
  const http = createHttpServer((_request, response) => {
    counts.http = (counts.http ?? 0) + 1;
    response.end(secret);
  });
  const unixPath = path.join(directory, "socket");
  const abstractName = `sluice-escape-${randomBytes(8).toString("hex")}`;
  const httpPort = must(await listen(http, { port: 0, host: "0.0.0.0" }, listening));
  const tcp4Port = must(await tcp("tcp4", { port: 0, host: "0.0.0.0" }));
  const tcp6Port = await tcp("tcp6", { port: 0, host: "::1" });
  const udp4Port = must(await udp("udp4", "udp4", "0.0.0.0"));
  const udp6Port = await udp("udp6", "udp6", "::1");
  await tcp("unixPath", { path: unixPath });
  await tcp("abstract", { path: `\0${abstractName}` });
  const victim = spawn(process.execPath, ["-e", "process.stdout.write('up'); setInterval(() => {}, 1e6)", secret], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(victim.stdout, "data");

  async function checkThatTrapsCount(): Promise<void> {
    const before = { ...counts };
    await (await fetch(`http://127.0.0.1:${httpPort}/`)).text();
    for (const where of [
      { port: tcp4Port, host: "127.0.0.1" },
      tcp6Port && { port: tcp6Port, host: "::1" },
      { path: unixPath },
      { path: `\0${abstractName}` },
    ]) {
      if (where) await once(connect(where as { path: string }).resume(), "close");
    }
    await sendUntilCounted("udp4", udp4Port, "127.0.0.1", counts);
    if (udp6Port) await sendUntilCounted("udp6", udp6Port, "::1", counts);
    const silent = Object.keys(counts).filter((name) => counts[name] === before[name] && !(name.endsWith("6") && tcp6Port === null));
    if (silent.length > 0) throw new Error(`These traps do not count: ${silent.join(", ")}.`);
    for (const name of Object.keys(counts)) counts[name] = 0;
  }

  async function close(): Promise<void> {
    for (const one of listening) one.close();
    victim.kill("SIGKILL");
    delete process.env[secretVariable];
    await rm(directory, { recursive: true, force: true });
  }

  return {
    secret,
    directory,
    secretFile,
    secretVariable,
    process: { pid: must(victim.pid ?? null), isAlive: () => isAlive(victim) },
    httpPort,
    tcp4Port,
    tcp6Port,
    udp4Port,
    udp6Port,
    unixPath,
    abstractName,
    addresses: Object.values(os.networkInterfaces()).flatMap((all) =>
      (all ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
    ),
    reached: () => ({ ...counts }),
    checkThatTrapsCount,
    files: async () => (await readdir(directory)).sort(),
    [Symbol.asyncDispose]: close,
  };
}

export const untouched: Readonly<Record<string, number>> = { http: 0, tcp4: 0, tcp6: 0, udp4: 0, udp6: 0, unixPath: 0, abstract: 0 };

/** Number of echo requests that this machine's kernel received, over IPv4 and IPv6. */
export async function receivedPings(): Promise<number> {
  const old = (await readFile("/proc/net/snmp", "utf8")).split("\n").filter((line) => line.startsWith("Icmp:"));
  const at = old[0]?.split(" ").indexOf("InEchos") ?? -1;
  const six = (await readFile("/proc/net/snmp6", "utf8").catch(() => "")).match(/^Icmp6InEchos\s+(\d+)/m);
  return Number(old[1]?.split(" ")[at] ?? 0) + Number(six?.[1] ?? 0);
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/** Null when the machine does not have the address (no IPv6). */
async function listen(server: Server, where: object, listening: { close(): unknown }[]): Promise<number | null> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  server.once("error", (error: NodeJS.ErrnoException) =>
    error.code === "EADDRNOTAVAIL" || error.code === "EAFNOSUPPORT" ? resolve(null) : reject(error),
  );
  server.listen(where, () => {
    listening.push(server);
    resolve((server.address() as AddressInfo).port ?? 0);
  });
  return await promise;
}

async function bind(socket: UdpSocket, address: string, listening: { close(): unknown }[]): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>();
  socket.once("error", () => resolve(null));
  socket.bind(0, address, () => {
    listening.push(socket);
    resolve(socket.address().port);
  });
  return await promise;
}

async function sendUntilCounted(name: string, port: number, address: string, counts: Record<string, number>): Promise<void> {
  const before = counts[name] ?? 0;
  const socket = createSocket(address === "::1" ? "udp6" : "udp4");
  for (let tries = 0; tries < 1000 && (counts[name] ?? 0) === before; tries += 1) {
    await new Promise<void>((resolve) => socket.send("x", port, address, () => setImmediate(resolve)));
  }
  socket.close();
}

function must<T>(value: T | null): T {
  if (value === null) throw new Error("This machine has no IPv4 loopback.");
  return value;
}

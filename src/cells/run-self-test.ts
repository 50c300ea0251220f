import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { z } from "zod";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import type { SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import { withLimits } from "../sandbox/limits.ts";
import type { Gate } from "../sandbox/pool.ts";
import { parseJson } from "../text/json.ts";
import { openCellSession, type CellSession } from "./open-cell-session.ts";

const checkResultSchema = z.object({ ok: z.boolean(), detail: z.string() });
/** Attempts to break out of a real sandbox, and whether each was stopped. */
export const selfTestChecksSchema = z.array(checkResultSchema.extend({ name: z.string() }));
export type SelfTestCheck = z.infer<typeof selfTestChecksSchema>[number];

export interface SelfTestOptions {
  readonly driver: SandboxDriver;
  readonly snapshot: Snapshot;
  /** The self-test's sandboxes count towards its places. */
  readonly gate: Gate;
  readonly signal?: AbortSignal;
}

const MEMORY_BYTES = 384 * 1024 * 1024;

/**
 * Opens a real sandbox of the driver and tries to break out of it. The host verifies what it can by itself: its own listeners count connections, and the
 * status of the cell shows whether the memory limit holds.
 */
export async function runSelfTest({ driver, snapshot, gate, signal }: SelfTestOptions): Promise<SelfTestCheck[]> {
  const limits = withLimits({ memoryBytes: MEMORY_BYTES, cellTimeoutMs: 20_000 });
  await using bait = await openHostBait();
  await using artifactChecker = createArtifactChecker();
  await using session = openCellSession({
    artifactChecker,
    rollback: driver.rollback,
    limits,
    take: async () => {
      const leave = await gate.enter(signal);
      try {
        const lease = await driver.open({ snapshot, limits, networkPolicy: "deny-all", signal });
        void lease.died.then(leave);
        return { lease, start: lease.start };
      } catch (error) {
        leave();
        throw error;
      }
    },
  });
  const checks = await tryToBreakOut(session, toSelfTestCode({ ...bait, processes: limits.processes }), signal);
  if (bait.connections() > 0) checks.push({ name: "network", ok: false, detail: "the sandbox reached a port of this machine" });
  checks.push(await tryToExceedMemory(session, signal));
  return checks;
}

async function tryToBreakOut(session: CellSession, code: string, signal?: AbortSignal): Promise<SelfTestCheck[]> {
  const outcome = await session.run({ code, signal });
  if (outcome.status !== "ok" || outcome.resultJson === null) {
    return [{ name: "python", ok: false, detail: `the self-test ended as ${outcome.status}: ${outcome.error?.message ?? "no result"}` }];
  }
  return parseSelfTestResult(outcome.resultJson);
}

/** Parses the result of the self-test cell. A malformed result is a failed check. */
export function parseSelfTestResult(resultJson: string): SelfTestCheck[] {
  const { data: results } = z.record(z.string(), checkResultSchema).safeParse(parseJson(resultJson));
  if (results === undefined) return [{ name: "python", ok: false, detail: "the self-test returned a malformed result" }];
  return Object.entries(results).map(([name, result]) => ({ name, ...result }));
}

async function tryToExceedMemory(session: CellSession, signal?: AbortSignal): Promise<SelfTestCheck> {
  const source = readSelfTestSource();
  const { status } = await session.run({ code: `${source}\ntake_memory()\n`, signal });
  const next = await session.run({ code: source, signal });
  const ok = status === "out_of_memory" && next.status === "ok";
  const attempt = `allocating 1 GB under a limit of ${MEMORY_BYTES / 1024 / 1024} MB ended as ${status}`;
  return { name: "memory", ok, detail: ok ? `${attempt}, and the next cell ran` : `${attempt}, the next cell as ${next.status}` };
}

/** Targets on the host that a sandbox must not reach. */
export interface HostTargets {
  readonly tcpPort: number;
  readonly udpPort: number;
  /** A file that every user of this machine can read. */
  readonly file: string;
  /** The command line of this process, which a sandbox must not see in /proc. */
  readonly commandLine: string;
}

/** Returns the code of the self-test cell: `python/self_test.py` and a call with the targets and the limit on processes. */
export function toSelfTestCode({ tcpPort, udpPort, file, commandLine, processes }: HostTargets & { processes: number }): string {
  const values = { tcp_port: tcpPort, udp_port: udpPort, file, command_line: commandLine, processes };
  const keywordArguments = Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `${readSelfTestSource()}\nset_result(self_test(${keywordArguments.join(", ")}))\n`;
}

function readSelfTestSource(): string {
  return readFileSync(path.join(import.meta.dirname, "..", "..", "python", "self_test.py"), "utf8");
}

interface HostBait extends HostTargets, AsyncDisposable {
  /** How many connections and datagrams have arrived. */
  connections(): number;
}

async function openHostBait(): Promise<HostBait> {
  let connections = 0;
  const tcp = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  const udp = createSocket("udp4", () => {
    connections += 1;
  });
  await new Promise<void>((resolve, reject) => tcp.once("error", reject).listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve, reject) => udp.once("error", reject).bind(0, "127.0.0.1", resolve));
  const directory = await mkdtemp(path.join(tmpdir(), "sluice-bait-"));
  await chmod(directory, 0o755);
  const file = path.join(directory, "secret");
  await writeFile(file, randomBytes(16).toString("hex"), { mode: 0o644 });
  return {
    tcpPort: (tcp.address() as AddressInfo).port,
    udpPort: udp.address().port,
    file,
    commandLine: await readFile("/proc/self/cmdline", "utf8"),
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => tcp.close(() => resolve()));
      await new Promise<void>((resolve) => udp.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

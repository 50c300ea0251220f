import path from "node:path";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { createImageChecker } from "../artifacts/create-image-checker.ts";
import type { SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import type { Gate } from "../sandbox/pool.ts";
import { withLimits } from "../sandbox/limits.ts";
import { parseJson } from "../text/json.ts";
import { openHostBait } from "./host-bait.ts";
import { openCellSession, type CellSession } from "./open-cell-session.ts";

const foundSchema = z.object({ ok: z.boolean(), detail: z.string() });
/** Things that were tried from inside a real sandbox, and whether they were held. */
export const checksSchema = z.array(foundSchema.extend({ name: z.string() }));
export type Check = z.infer<typeof checksSchema>[number];

export interface SelfTest {
  readonly driver: SandboxDriver;
  readonly snapshot: Snapshot;
  /** Its sandboxes count among all the others. */
  readonly gate: Gate;
  readonly signal?: AbortSignal | undefined;
}

const MEMORY_BYTES = 384 * 1024 * 1024;

/**
 * Opens a real sandbox of the driver and tries to get out of it. What the cell says is checked where the host can check it: listeners of our own count who
 * came, and the memory test is judged by how the cell ended.
 */
export async function selfTest({ driver, snapshot, gate, signal }: SelfTest): Promise<Check[]> {
  const limits = withLimits({ memoryBytes: MEMORY_BYTES, cellTimeoutMs: 20_000 });
  await using bait = await openHostBait();
  await using images = createImageChecker();
  await using session = openCellSession({
    images,
    rollback: driver.rollback,
    limits,
    take: async () => {
      const leave = await gate.enter(signal);
      try {
        const lease = await driver.open({ snapshot, limits, networkPolicy: "deny-all", ...(signal && { signal }) });
        void lease.died.then(leave);
        return { lease, start: lease.start };
      } catch (error) {
        leave();
        throw error;
      }
    },
  });
  const checks = await tryFromInside(session, toSelfTestCode({ ...bait, processes: limits.processes }), signal);
  if (bait.arrived() > 0) checks.push({ name: "network", ok: false, detail: "something from the sandbox reached a port of this machine" });
  checks.push(await tryMemory(session, signal));
  return checks;
}

async function tryFromInside(session: CellSession, code: string, signal?: AbortSignal): Promise<Check[]> {
  const outcome = await session.run({ code, ...(signal && { signal }) });
  if (outcome.status !== "ok" || outcome.resultJson === null) {
    return [{ name: "python", ok: false, detail: `the self-test ended as ${outcome.status}: ${outcome.error?.message ?? "no result"}` }];
  }
  return toChecks(outcome.resultJson);
}

/** What a sandbox says of itself; that it says something else is a failed check. */
export function toChecks(resultJson: string): Check[] {
  const { data: found } = z.record(z.string(), foundSchema).safeParse(parseJson(resultJson));
  if (found === undefined) return [{ name: "python", ok: false, detail: "the self-test gave a result that it cannot give" }];
  return Object.entries(found).map(([name, check]) => ({ name, ...check }));
}

async function tryMemory(session: CellSession, signal?: AbortSignal): Promise<Check> {
  const source = readSource();
  const { status } = await session.run({ code: `${source}\ntake_memory()\n`, ...(signal && { signal }) });
  const after = await session.run({ code: source, ...(signal && { signal }) });
  const held = status === "out_of_memory" && after.status === "ok";
  return {
    name: "memory",
    ok: held,
    detail: held
      ? `1 GB asked for under a limit of ${MEMORY_BYTES / 1024 / 1024} MB ended as out_of_memory, and the next cell ran`
      : `1 GB asked for under a limit of ${MEMORY_BYTES / 1024 / 1024} MB ended as ${status}, the next cell as ${after.status}`,
  };
}

export interface SelfTestFacts {
  readonly tcpPort: number;
  readonly udpPort: number;
  readonly file: string;
  readonly commandLine: string;
  readonly processes: number;
}

/** The cell that the self-test runs: `python/self_test.py`, called with what the host put up for it to reach. */
export function toSelfTestCode({ tcpPort, udpPort, file, commandLine, processes }: SelfTestFacts): string {
  const given = { tcp_port: tcpPort, udp_port: udpPort, file, command_line: commandLine, processes };
  const words = Object.entries(given).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `${readSource()}\nset_result(self_test(${words.join(", ")}))\n`;
}

function readSource(): string {
  return readFileSync(path.join(import.meta.dirname, "..", "..", "python", "self_test.py"), "utf8");
}

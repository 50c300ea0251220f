import { createHash, randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { z } from "zod";
import { createArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import { NoSandboxError } from "../errors/sluice-error.ts";
import type { DriverName, SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import { withLimits } from "../sandbox/limits.ts";
import { openInPlace, type Gate } from "../sandbox/pool.ts";
import { parseJson } from "../text/json.ts";
import { openCellSession, type CellSession } from "./open-cell-session.ts";

const checkResultSchema = z.object({ ok: z.boolean(), detail: z.string() });
/** Attempts to break out of a real sandbox, and whether each was stopped. */
const selfTestChecksSchema = z.array(checkResultSchema.extend({ name: z.string() }));
type SelfTestCheck = z.infer<typeof selfTestChecksSchema>[number];

export interface DriverReport {
  readonly name: DriverName;
  readonly usable: boolean;
  readonly reason?: string;
  readonly fix?: string;
  readonly checks: readonly SelfTestCheck[];
  readonly notes: readonly string[];
}

interface SelfTestOptions {
  readonly driver: SandboxDriver;
  readonly snapshot: Snapshot;
  /** The self-test's sandboxes count towards its places. */
  readonly gate: Gate;
  readonly signal?: AbortSignal;
}

interface ExamineDriverOptions extends SelfTestOptions {
  readonly cacheDirectory: string;
  /** Runs the self-test even if it passed before. */
  readonly fresh?: boolean;
}

interface ChooseDriverOptions extends Omit<ExamineDriverOptions, "driver" | "fresh"> {
  readonly wanted: DriverName | "auto";
  /** Strongest first. */
  readonly drivers: readonly SandboxDriver[];
}

/**
 * Returns the requested driver, or for "auto" the strongest one whose self-test passes on this machine. Throws NO_SANDBOX rather than fall back to a
 * weaker driver than requested.
 */
export async function chooseDriver({ wanted, drivers, ...options }: ChooseDriverOptions): Promise<SandboxDriver> {
  const candidates = wanted === "auto" ? drivers : drivers.filter((driver) => driver.name === wanted);
  const failures: string[] = [];
  for (const driver of candidates) {
    const report = await examineDriver({ driver, ...options });
    if (report.usable) return driver;
    failures.push(`${driver.name}: ${report.reason} ${report.fix ?? ""}`.trim());
  }
  throw new NoSandboxError({
    code: "NO_SANDBOX",
    message:
      wanted === "auto"
        ? `No sandbox driver can be used on this machine. ${failures.join(" ")}`
        : `The driver ${wanted} cannot be used. ${failures.join(" ")}`,
    hint: "Nothing was run. `sluice doctor` shows every check, `sluice snapshot verify` whether the snapshot is intact.",
  });
}

/**
 * Runs the preflight and the self-test of one driver. A passed self-test is cached until the machine reboots or the engine, the snapshot or the test
 * itself changes; `fresh` ignores the cache.
 */
export async function examineDriver({
  driver,
  snapshot,
  cacheDirectory,
  gate,
  fresh = false,
  signal,
}: ExamineDriverOptions): Promise<DriverReport> {
  const preflight = await driver.preflight();
  if (!preflight.usable) return { name: driver.name, usable: false, reason: preflight.reason, fix: preflight.fix, checks: [], notes: [] };
  const cacheFile = path.join(cacheDirectory, "self-tests", `${await toCacheKey(driver, snapshot, preflight.version)}.json`);
  const notes = [preflight.version, ...preflight.notes];
  if (!fresh) {
    const cached = await readCachedChecks(cacheFile);
    if (cached !== null) return { name: driver.name, usable: true, checks: cached, notes };
  }
  try {
    const checks = await runSelfTest({ driver, snapshot, gate, signal });
    const failed = checks.filter((check) => !check.ok);
    if (failed.length === 0) {
      await cacheChecks(cacheFile, checks);
      return { name: driver.name, usable: true, checks, notes };
    }
    const reason = `Its self-test failed: ${failed.map((check) => `${check.name} (${check.detail})`).join("; ")}.`;
    return { name: driver.name, usable: false, reason, fix: "Use another driver, and report this.", checks, notes };
  } catch (error) {
    if (signal?.aborted) throw error;
    const reason = `Its self-test could not run: ${error instanceof Error ? error.message : String(error)}`;
    const fix = error instanceof NoSandboxError && error.hint ? error.hint : "Try `sluice snapshot verify` and `sluice prepare`.";
    return { name: driver.name, usable: false, reason, fix, checks: [], notes };
  }
}

async function toCacheKey(driver: SandboxDriver, snapshot: Snapshot, version: string): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  const code = toSelfTestCode({ tcpPort: 0, udpPort: 0, file: "", commandLine: "", processes: 0 });
  const facts = [driver.name, version, snapshot.id, os.release(), boot, process.getuid?.() ?? -1, code];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

async function readCachedChecks(file: string): Promise<SelfTestCheck[] | null> {
  return selfTestChecksSchema.safeParse(parseJson(await readFile(file, "utf8").catch(() => ""))).data ?? null;
}

async function cacheChecks(file: string, checks: readonly SelfTestCheck[]): Promise<void> {
  try {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(`${file}.${process.pid}`, JSON.stringify(checks));
    await rename(`${file}.${process.pid}`, file);
  } catch {
    // If the cache cannot be written, the self-test runs each time.
  }
}

const MEMORY_BYTES = 384 * 1024 * 1024;

/**
 * Opens a real sandbox of the driver and tries to break out of it. The host verifies what it can by itself: its own listeners count connections, and the
 * status of the cell shows whether the memory limit holds.
 */
async function runSelfTest({ driver, snapshot, gate, signal }: SelfTestOptions): Promise<SelfTestCheck[]> {
  const limits = withLimits({ memoryBytes: MEMORY_BYTES, cellTimeoutMs: 20_000 });
  await using bait = await openHostBait();
  await using artifactChecker = createArtifactChecker();
  await using session = openCellSession({
    artifactChecker,
    rollback: driver.rollback,
    limits,
    take: async () => {
      const lease = await openInPlace({ driver, snapshot, limits, leave: await gate.enter(signal), signal });
      return { lease, start: lease.start };
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
interface HostTargets {
  readonly tcpPort: number;
  readonly udpPort: number;
  /** A file that every user of this machine can read. */
  readonly file: string;
  /** The command line of this process, which a sandbox must not see in /proc. */
  readonly commandLine: string;
}

/** Returns the code of the self-test cell: `python/self_test.py` and a call with the targets and the limit on processes. */
function toSelfTestCode({ tcpPort, udpPort, file, commandLine, processes }: HostTargets & { processes: number }): string {
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
  const directory = await mkdtemp(path.join(os.tmpdir(), "sluice-bait-"));
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

import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { NoSandboxError } from "../errors/sluice-error.ts";
import type { DriverName, SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import type { Gate } from "../sandbox/pool.ts";
import { parseJson } from "../text/json.ts";
import { runSelfTest, selfTestChecksSchema, toSelfTestCode, type SelfTestCheck } from "./run-self-test.ts";

export interface DriverReport {
  readonly name: DriverName;
  readonly usable: boolean;
  readonly reason?: string;
  readonly fix?: string;
  readonly checks: readonly SelfTestCheck[];
  readonly notes: readonly string[];
}

interface ChooseDriverOptions {
  /** Strongest first. */
  readonly drivers: readonly SandboxDriver[];
  readonly snapshot: Snapshot;
  readonly cacheDirectory: string;
  readonly gate: Gate;
  readonly signal?: AbortSignal;
}

/**
 * Returns the requested driver, or for "auto" the strongest one whose self-test passes on this machine. Throws NO_SANDBOX rather than fall back to a
 * weaker driver than requested.
 */
export async function chooseDriver({ wanted, ...options }: ChooseDriverOptions & { wanted: DriverName | "auto" }): Promise<SandboxDriver> {
  const candidates = wanted === "auto" ? options.drivers : options.drivers.filter((driver) => driver.name === wanted);
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
}: Omit<ChooseDriverOptions, "drivers"> & { driver: SandboxDriver; fresh?: boolean }): Promise<DriverReport> {
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

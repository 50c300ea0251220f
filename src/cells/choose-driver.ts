import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { NoSandboxError } from "../errors/sluice-error.ts";
import type { DriverName, SandboxDriver, Snapshot } from "../sandbox/contract.ts";
import type { Gate } from "../sandbox/pool.ts";
import { parseJson } from "../text/json.ts";
import { type Check, checksSchema, selfTest, toSelfTestCode } from "./self-test.ts";

export interface DriverReport {
  readonly name: DriverName;
  readonly usable: boolean;
  readonly reason?: string;
  readonly fix?: string;
  readonly checks: readonly Check[];
  readonly notes: readonly string[];
}

interface Options {
  /** Strongest first. */
  readonly drivers: readonly SandboxDriver[];
  readonly snapshot: Snapshot;
  readonly cacheDirectory: string;
  readonly gate: Gate;
  readonly signal?: AbortSignal | undefined;
}

/** The strongest driver whose self-test passes here, or the one asked for. Never anything weaker than asked. */
export async function chooseDriver({ wanted, ...options }: Options & { wanted: DriverName | "auto" }): Promise<SandboxDriver> {
  const candidates = wanted === "auto" ? options.drivers : options.drivers.filter((driver) => driver.name === wanted);
  const failures: string[] = [];
  for (const driver of candidates) {
    const report = await examine({ driver, ...options });
    if (report.usable) return driver;
    failures.push(`${driver.name}: ${report.reason} ${report.fix ?? ""}`.trim());
  }
  throw new NoSandboxError({
    code: "NO_SANDBOX",
    message:
      wanted === "auto"
        ? `No sandbox driver can be used on this machine. ${failures.join(" ")}`
        : `The driver ${wanted} cannot be used. ${failures.join(" ")}`,
    hint: "Nothing was run. `sluice doctor` shows what was tried, `sluice snapshot verify` whether the snapshot is whole.",
  });
}

/** Preflight and self-test of one driver. A passed self-test is remembered until the machine, the engine, the snapshot or what is tried changes. */
export async function examine({
  driver,
  snapshot,
  cacheDirectory,
  gate,
  fresh = false,
  signal,
}: Omit<Options, "drivers"> & { driver: SandboxDriver; fresh?: boolean }): Promise<DriverReport> {
  const preflight = await driver.preflight();
  if (!preflight.usable) return { name: driver.name, usable: false, reason: preflight.reason, fix: preflight.fix, checks: [], notes: [] };
  const memory = path.join(cacheDirectory, "self-tests", `${await passKey(driver, snapshot, preflight.version)}.json`);
  const notes = [preflight.version, ...preflight.notes];
  if (!fresh) {
    const passed = await readPass(memory);
    if (passed !== null) return { name: driver.name, usable: true, checks: passed, notes };
  }
  try {
    const checks = await selfTest({ driver, snapshot, gate, signal });
    const failed = checks.filter((check) => !check.ok);
    if (failed.length === 0) {
      await writePass(memory, checks);
      return { name: driver.name, usable: true, checks, notes };
    }
    const reason = `Its self-test found something not enforced: ${failed.map((check) => `${check.name} (${check.detail})`).join("; ")}.`;
    return { name: driver.name, usable: false, reason, fix: "Use another driver, and report this.", checks, notes };
  } catch (error) {
    if (signal?.aborted) throw error;
    const reason = `Its self-test could not run: ${error instanceof Error ? error.message : String(error)}`;
    const fix = error instanceof NoSandboxError && error.hint ? error.hint : "`sluice snapshot verify` and `sluice prepare` may help.";
    return { name: driver.name, usable: false, reason, fix, checks: [], notes };
  }
}

async function passKey(driver: SandboxDriver, snapshot: Snapshot, version: string): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  const tried = toSelfTestCode({ tcpPort: 0, udpPort: 0, file: "", commandLine: "", processes: 0 });
  const facts = [driver.name, version, snapshot.id, os.release(), boot, process.getuid?.() ?? -1, tried];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

async function readPass(file: string): Promise<Check[] | null> {
  return checksSchema.safeParse(parseJson(await readFile(file, "utf8").catch(() => ""))).data ?? null;
}

/** Best effort: where the cache cannot be written, the self-test runs each time. */
async function writePass(file: string, checks: readonly Check[]): Promise<void> {
  try {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(`${file}.${process.pid}`, JSON.stringify(checks));
    await rename(`${file}.${process.pid}`, file);
  } catch {
    // see above
  }
}

import path from "node:path";
import { parseArgs } from "node:util";
import { cacheDirectory, processEnvironment, searchPath } from "../../config/environment.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { createRuntime, type Runtime } from "../../create-runtime.ts";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { countQuarantined } from "../../history/open-history.ts";
import { describeQuarantined } from "../../history/quarantine.ts";
import type { DriverReport } from "../../cells/choose-driver.ts";
import type { SnapshotInfo } from "../../sandbox/snapshot/find-snapshot.ts";
import { exitStatus } from "../exit-status.ts";
import { formatBytes } from "../progress-printer.ts";
import { listMainPackages } from "./snapshot.ts";

export const doctorUsage = `Usage: sluice doctor [--json]

Opens a sandbox with each driver on this machine, tries to break out of it, and reports which
protections hold. A driver that cannot be used is shown with the reason and the fix.

It also reports stored entries that \`sluice serve\` could not read and has put aside.

  --json          print one JSON document
  --config FILE   use this configuration

Exit status: 0 if a driver is usable, 3 if none is.
`;

export async function doctorCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { values } = parseArgs({ args, options: { json: { type: "boolean", default: false }, config: { type: "string" } } });
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), searchPath: searchPath(), poolSize: 0 });
  const snapshot = await runtime.snapshot().catch(nullIfMissing);
  const drivers = snapshot === null ? await preflightOnly(runtime) : await runtime.examineDrivers(signal);
  const defaultDriver = drivers.find((driver) => driver.usable)?.name ?? null;
  const report = { defaultDriver, drivers, snapshot, history: await examineHistory(values.config) };
  process.stdout.write(values.json ? `${JSON.stringify(toJson(report), null, 2)}\n` : describe(report));
  return defaultDriver === null ? exitStatus.noSandbox : exitStatus.ok;
}

interface DoctorReport {
  readonly defaultDriver: string | null;
  readonly drivers: readonly DriverReport[];
  readonly snapshot: SnapshotInfo | null;
  readonly history: HistoryReport;
}

/** `quarantined` is null if the history could not be examined; `detail` says why, or what to do. */
interface HistoryReport {
  readonly quarantined: number | null;
  readonly detail: string | null;
}

/** Never throws: a wrong configuration must not hide what is wrong with the sandboxes. */
async function examineHistory(file: string | undefined): Promise<HistoryReport> {
  try {
    const { configuration } = await loadConfiguration({ file, workingDirectory: process.cwd(), environment: processEnvironment() });
    const quarantined = countQuarantined(path.join(configuration.artifacts.directory, "history.sqlite"));
    return { quarantined, detail: describeQuarantined(quarantined) };
  } catch (error) {
    return { quarantined: null, detail: `The history could not be examined: ${(error as Error).message}` };
  }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof NoSandboxError) return null;
  throw error;
}

async function preflightOnly(runtime: Runtime): Promise<DriverReport[]> {
  const reports: DriverReport[] = [];
  for (const { name, preflight } of await runtime.drivers()) {
    const found = await preflight();
    const problem = found.usable ? { reason: "The snapshot is missing.", fix: "Run `sluice prepare`." } : found;
    reports.push({ name, usable: false, reason: problem.reason, fix: problem.fix, checks: [], notes: [] });
  }
  return reports;
}

function toJson({ defaultDriver, drivers, snapshot, history }: DoctorReport): unknown {
  const { id, python, packages, source, bytes } = snapshot ?? {};
  return {
    schemaVersion: 1,
    default: defaultDriver,
    drivers: drivers.map(toDriverJson),
    snapshot: snapshot === null ? null : { id, python, packages, source, bytes },
    history,
  };
}

/** Writes the notes about the engine as the first check. */
function toDriverJson({ notes, checks, ...driver }: DriverReport): unknown {
  const engine = notes.length === 0 ? [] : [{ name: "engine", ok: true, detail: notes.join(" ") }];
  return { ...driver, checks: [...engine, ...checks] };
}

function describe({ defaultDriver, drivers, snapshot, history }: DoctorReport): string {
  const lines = [`default: ${defaultDriver ?? "none; this machine cannot run code in a sandbox"}`, ""];
  for (const driver of drivers) {
    const [engine, ...notes] = driver.notes;
    lines.push(`${driver.name}: ${driver.usable ? "usable" : "not usable"}${engine === undefined ? "" : `, ${engine}`}`);
    if (driver.reason) lines.push(`  why: ${driver.reason}`);
    if (driver.fix) lines.push(`  fix: ${driver.fix}`);
    for (const note of notes) lines.push(`  note: ${note}`);
    for (const check of driver.checks) lines.push(`  ${check.ok ? "held  " : "BROKEN"} ${check.name}: ${check.detail}`);
    lines.push("");
  }
  if (snapshot === null) lines.push("snapshot: missing; run `sluice prepare`");
  else {
    const { id, python, bytes, source, packages } = snapshot;
    lines.push(`snapshot: ${id} (Python ${python}, ${formatBytes(bytes)}, from ${source})`, `  ${listMainPackages(packages)}`);
    if (source === "debian")
      lines.push("  built from Debian's packages because the package index could not be reached; pyarrow and Parquet support are missing");
  }
  if (history.detail !== null) lines.push("", `history: ${history.detail}`);
  return `${lines.join("\n")}\n`;
}

import { parseArgs } from "node:util";
import { cacheDirectory, searchPath } from "../../config/environment.ts";
import { createRuntime, type Runtime } from "../../create-runtime.ts";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import type { DriverReport } from "../../cells/choose-driver.ts";
import type { SnapshotInfo } from "../../sandbox/snapshot/find-snapshot.ts";
import { exitStatus } from "../exit-status.ts";

export const doctorUsage = `Usage: sluice doctor [--json]

Tries every sandbox driver on this machine for real and says what was seen enforced. Exit status 0 if there is a usable default, else 3.
`;

export async function doctorCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { values } = parseArgs({ args, options: { json: { type: "boolean", default: false } } });
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), searchPath: searchPath(), poolSize: 0 });
  const snapshot = await runtime.snapshot().catch(noSnapshot);
  const drivers = snapshot === null ? await preflightOnly(runtime) : await runtime.examineDrivers(signal);
  const found = drivers.find((driver) => driver.usable)?.name ?? null;
  process.stdout.write(values.json ? `${JSON.stringify(toJson(found, drivers, snapshot), null, 2)}\n` : describe(found, drivers, snapshot));
  return found === null ? exitStatus.noSandbox : exitStatus.ok;
}

function noSnapshot(error: unknown): null {
  if (error instanceof NoSandboxError) return null;
  throw error;
}

async function preflightOnly(runtime: Runtime): Promise<DriverReport[]> {
  const reports: DriverReport[] = [];
  for (const { name, preflight } of await runtime.drivers()) {
    const found = await preflight();
    const why = found.usable ? { reason: "There is no snapshot to run.", fix: "Run `sluice prepare`." } : found;
    reports.push({ name, usable: false, reason: why.reason, fix: why.fix, checks: [], notes: [] });
  }
  return reports;
}

function toJson(found: string | null, drivers: readonly DriverReport[], snapshot: SnapshotInfo | null): unknown {
  const { id, python, packages, source, bytes } = snapshot ?? {};
  return {
    schemaVersion: 1,
    default: found,
    drivers: drivers.map(toDriverJson),
    snapshot: snapshot === null ? null : { id, python, packages, source, bytes },
  };
}

/** What the engine is, and what it lacks here, is the first of the things that were found. */
function toDriverJson({ notes, checks, ...driver }: DriverReport): unknown {
  const engine = notes.length === 0 ? [] : [{ name: "engine", ok: true, detail: notes.join(" ") }];
  return { ...driver, checks: [...engine, ...checks] };
}

function describe(found: string | null, drivers: readonly DriverReport[], snapshot: SnapshotInfo | null): string {
  const lines = [`default: ${found ?? "none; nothing can be run"}`, ""];
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
    const packages = Object.entries(snapshot.packages)
      .filter(([name]) => /^(pandas|numpy|scipy|matplotlib|statsmodels|pyarrow|openpyxl)$/.test(name))
      .map(([name, version]) => `${name} ${version}`);
    lines.push(
      `snapshot: ${snapshot.id} (Python ${snapshot.python}, ${Math.round(snapshot.bytes / 1e6)} MB, from ${snapshot.source})`,
      `  ${packages.join(", ")}`,
    );
    if (snapshot.source === "debian")
      lines.push("  built from Debian's packages because the package index could not be reached: pyarrow (and Parquet) is missing");
  }
  return `${lines.join("\n")}\n`;
}

/**
 * Resolves each python/requirements*.in into a lock file with the hashes of the wheels for both machine types.
 * Uses the local pip configuration, but writes only names, versions and hashes.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { recipe, wheelPlatforms } from "../src/sandbox/snapshot/recipe.ts";

interface LockedPackage {
  readonly version: string;
  readonly hashes: Set<string>;
}

interface PipReport {
  readonly install: readonly {
    readonly metadata: { readonly name: string; readonly version: string };
    readonly download_info: { readonly archive_info: { readonly hashes: { readonly sha256: string } } };
  }[];
}

const python = path.join(import.meta.dirname, "..", "python");
for (const name of ["requirements", "requirements-dev", "requirements-bench", "requirements-bench-execute"]) await lock(name);

async function lock(name: string): Promise<void> {
  const locked = new Map<string, LockedPackage>();
  const inSnapshot = name === "requirements" ? new Set<string>() : new Set((await snapshotVersions()).map((line) => line.split("==")[0]));
  for (const machine of ["x86_64", "aarch64"]) {
    for (const wheel of (await resolve(name, machine)).install) {
      const key = wheel.metadata.name.toLowerCase().replaceAll(/[-_.]+/g, "-");
      if (inSnapshot.has(key)) continue;
      const entry = locked.get(key) ?? { version: wheel.metadata.version, hashes: new Set() };
      if (entry.version !== wheel.metadata.version)
        throw new Error(`${key}: ${entry.version} and ${wheel.metadata.version} for different machines`);
      entry.hashes.add(wheel.download_info.archive_info.hashes.sha256);
      locked.set(key, entry);
    }
  }
  const lines = [...locked]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { version, hashes }]) =>
      [`${key}==${version}`, ...[...hashes].sort().map((hash) => `    --hash=sha256:${hash}`)].join(" \\\n"),
    );
  await writeFile(path.join(python, `${name}.lock`), `# Made by \`npm run lock\` from ${name}.in.\n${lines.join("\n")}\n`);
  process.stdout.write(`${name}.lock: ${locked.size} packages\n`);
}

async function resolve(name: string, machine: string): Promise<PipReport> {
  const directory = await mkdtemp(path.join(tmpdir(), "sluice-lock-"));
  try {
    const report = path.join(directory, "report.json");
    const platforms = wheelPlatforms(machine).flatMap((platform) => ["--platform", platform]);
    // The constraint keeps the test tools on the versions of the snapshot.
    const constraint = name === "requirements" ? [] : ["--constraint", await constraints(directory)];
    await promisify(execFile)("python3", [
      "-m",
      "pip",
      "install",
      "--dry-run",
      "--ignore-installed",
      "--quiet",
      "--report",
      report,
      "--target",
      path.join(directory, "target"),
      "--python-version",
      recipe.python,
      "--implementation",
      "cp",
      "--only-binary=:all:",
      ...platforms,
      ...constraint,
      "-r",
      path.join(python, `${name}.in`),
    ]);
    return JSON.parse(await readFile(report, "utf8")) as PipReport;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function constraints(directory: string): Promise<string> {
  const file = path.join(directory, "constraints.txt");
  await writeFile(file, (await snapshotVersions()).join("\n"));
  return file;
}

/** Returns lines of `name==version`. */
async function snapshotVersions(): Promise<string[]> {
  const locked = await readFile(path.join(python, "requirements.lock"), "utf8");
  return locked.match(/^[\w-]+==\S+/gm) ?? [];
}

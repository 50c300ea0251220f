import { hash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { SluiceError } from "../../errors/sluice-error.ts";
import { openBuildDirectory, openLock } from "./build-directory.ts";
import { diskBytes } from "./file-list.ts";
import { runStep, type OnProgress } from "./progress.ts";
import { pythonDirectory, recipe, wheelPlatforms } from "./recipe.ts";
import { tryProgram } from "./run-program.ts";

interface InstallOptions {
  readonly lockFile: string;
  readonly target: string;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** `unreachable` is the reason as one sentence. The target contains nothing usable then. */
export type WheelsResult = { readonly installed: true } | { readonly installed: false; readonly unreachable: string };

/**
 * Installs exactly the wheels that the lock file names, with the host's pip and the user's pip configuration. Throws if a hash does not match.
 * Returns a result if the package index cannot be reached or lacks a wheel, because the caller may have an alternative.
 */
export async function installWheels({ lockFile, target, onLine, signal }: InstallOptions): Promise<WheelsResult> {
  // Next to the target, so that it is removed together with it if pip is killed, and pip's last step is a rename instead of a copy.
  const temporary = `${target}-temporary`;
  await mkdir(target, { recursive: true });
  await mkdir(temporary, { recursive: true });
  const python = await findPip(signal);
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  const { exitCode, stdout, stderr } = await tryProgram({
    program: python,
    args: [
      ...["-m", "pip", "--no-input", "--disable-pip-version-check", "install"],
      ...["--retries", "2", "--root-user-action", "ignore", "--progress-bar", "off"],
      ...["--no-deps", "--no-compile", "--ignore-installed", "--only-binary=:all:", "--require-hashes"],
      ...["--python-version", recipe.python, "--implementation", "cp"],
      ...wheelPlatforms(machine).flatMap((platform) => ["--platform", platform]),
      ...["--target", target, "-r", lockFile],
    ],
    extraEnvironment: { TMPDIR: temporary },
    onLine,
    signal,
  });
  await rm(temporary, { recursive: true, force: true });
  if (exitCode === 0) return { installed: true };
  const reason = unreachableReason(`${stdout}\n${stderr}`);
  if (reason) return { installed: false, unreachable: reason };
  throw new SluiceError({
    code: "SNAPSHOT_WHEELS_FAILED",
    message: `pip could not install the packages of ${lockFile}:\n${stderr.trim().split("\n").slice(-12).join("\n")}`,
    hint: "Nothing was built. If a hash does not match, the package index serves different files than the locked ones.",
    details: { exitCode },
  });
}

/** Why the package index could not deliver. Null when pip failed for another reason, such as a wrong hash. */
export function unreachableReason(output: string): string | null {
  if (/DO NOT MATCH THE HASHES|--require-hashes mode/i.test(output)) return null;
  const connection =
    /NewConnectionError|ConnectTimeout|ReadTimeout|Connection (?:refused|reset|aborted)|Name or service not known|Temporary failure in name resolution|ProxyError|Network is unreachable|SSLError|Max retries exceeded/i;
  const line = output.split("\n").find((text) => connection.test(text));
  if (line) return `the package index could not be reached (${connection.exec(line)?.[0]})`;
  const missing = /No matching distribution found for (\S+)/.exec(output);
  return missing ? `the package index does not have ${missing[1]}` : null;
}

async function findPip(signal: AbortSignal | undefined): Promise<string> {
  for (const python of ["python3", "/usr/bin/python3"]) {
    const { exitCode } = await tryProgram({ program: python, args: ["-m", "pip", "--version"], signal });
    if (exitCode === 0) return python;
  }
  throw new SluiceError({ code: "PIP_MISSING", message: "No python3 with pip was found." });
}

export interface ExtraWheelsOptions {
  readonly cacheDirectory: string;
  /** `dev`: packages for the tests of python/. `bench`, `bench-execute`: projects that the benchmarks compare with. */
  readonly name: "dev" | "bench" | "bench-execute";
  readonly onProgress?: OnProgress;
  readonly signal?: AbortSignal;
}

/**
 * Installs packages for the snapshot's Python that are not part of any snapshot. Returns their directory, to be bind-mounted and put on PYTHONPATH.
 */
export async function openExtraWheels({ cacheDirectory, name, onProgress, signal }: ExtraWheelsOptions): Promise<string> {
  const lockFile = path.join(pythonDirectory, `requirements-${name}.lock`);
  const final = path.join(cacheDirectory, "wheels", `${name}-${process.arch}-${hash("sha256", await readFile(lockFile)).slice(0, 16)}`);
  if (existsSync(final)) return final;
  await using _lock = await openLock({ file: path.join(cacheDirectory, "locks", `wheels-${name}`), signal });
  if (existsSync(final)) return final;
  await using build = await openBuildDirectory(cacheDirectory);
  const target = path.join(build.directory, "wheels");
  await runStep(`Python wheels for ${name === "dev" ? "the tests" : "the benchmarks"}`, onProgress, async (report) => {
    const result = await installWheels({ lockFile, target, onLine: report, signal });
    if (!result.installed) {
      throw new SluiceError({ code: "EXTRA_WHEELS_UNREACHABLE", message: `${path.basename(lockFile)}: ${result.unreachable}.` });
    }
    return { value: undefined, bytes: await diskBytes(target) };
  });
  await mkdir(path.dirname(final), { recursive: true });
  await rename(target, final);
  return final;
}

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { SluiceError } from "../../errors/sluice-error.ts";

export interface ProgramOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Added to the environment of this process: proxies and mirrors of the user stay in force. */
  readonly extraEnvironment?: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * A watcher in the program's group waits on descriptor 3, which closes when this process ends, by SIGKILL too, and then ends the whole group: a death signal
 * would reach the program alone and not what it forked. The umask lets the sandbox's user read what is written.
 */
const inGroup = 'umask 022; { read -r _ <&3; kill -KILL 0; } > /dev/null 2>&1 & exec 3<&-; exec env "$@"';

export interface ProgramOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end and gives what it wrote. It dies with this process, and on abort too, with everything it started. */
export async function runProgram(options: ProgramOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await tryProgram(options);
  if (exitCode === 0) return stdout;
  const lastLines = (stderr.trim() || stdout.trim()).split("\n").slice(-12).join("\n");
  throw new SluiceError({
    code: "PROGRAM_FAILED",
    message: `${options.program} ended with status ${exitCode}:\n${lastLines}`,
    details: { program: options.program, exitCode },
  });
}

/** The same, where a failure is an answer and not an exception. Rejects only when the program cannot be started or on abort. */
export async function tryProgram({ program, args, cwd, extraEnvironment = {}, onLine, signal }: ProgramOptions): Promise<ProgramOutput> {
  signal?.throwIfAborted();
  // A group of its own, so that an abort reaches grandchildren.
  const variables = Object.entries(extraEnvironment).map(([name, value]) => `${name}=${value}`);
  const child = spawn("sh", ["-c", inGroup, "sh", ...variables, program, ...args], {
    cwd,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    detached: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  child.once("exit", () => child.stdio[3]?.destroy());
  child.stdio[3]?.on("error", () => undefined);
  child.once("close", (code) => resolve(code ?? 128));
  const abort = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It ended by itself in the meantime.
    }
  };
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const [stdout, stderr, exitCode] = await Promise.all([collect(child.stdout!, onLine), collect(child.stderr!, onLine), promise]);
    signal?.throwIfAborted();
    return { exitCode, stdout, stderr };
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

async function collect(stream: Readable, onLine: ((line: string) => void) | undefined): Promise<string> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
    lines.push(line);
    onLine?.(line);
  }
  return lines.join("\n");
}

export interface RootfsProgramOptions {
  readonly rootfs: string;
  readonly args: readonly string[];
  /** Only the builder writes into a root, and only before it has its final name. */
  readonly writable?: boolean;
  /** More directories to show, read-only: path inside to path here. */
  readonly binds?: Readonly<Record<string, string>>;
  readonly workingDirectory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs a program of the root file system in namespaces of its own, without network and without the caller's environment; gives its stdout. */
export async function runInRootfs(options: RootfsProgramOptions): Promise<string> {
  return await runProgram({ program: "bwrap", args: toRootfsBwrapArguments(options), signal: options.signal });
}

export function toRootfsBwrapArguments({
  rootfs,
  args,
  writable = false,
  binds = {},
  workingDirectory = "/sandbox",
  environment = {},
}: RootfsProgramOptions): string[] {
  const variables = {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: "/sandbox",
    LANG: "C.UTF-8",
    MPLBACKEND: "Agg",
    PYTHONDONTWRITEBYTECODE: "1",
    ...environment,
  };
  return [
    ...["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"],
    ...[writable ? "--bind" : "--ro-bind", rootfs, "/"],
    ...["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/sandbox"],
    ...Object.entries(binds).flatMap(([inside, here]) => ["--ro-bind", here, inside]),
    ...Object.entries(variables).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--chdir", workingDirectory, "--", ...args],
  ];
}

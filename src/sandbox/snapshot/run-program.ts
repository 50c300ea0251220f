import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { SluiceError } from "../../errors/sluice-error.ts";

export interface ProgramOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Added to this process's environment, so that the user's proxy and mirror settings apply. */
  readonly extraEnvironment?: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Starts the program together with a watcher in the same process group. The watcher waits on descriptor 3, which closes when this process ends, even by
 * SIGKILL, and then kills the whole group. A parent-death signal would reach only the program, not its children. The umask makes the program's files
 * readable for the sandbox's user.
 */
const RUN_IN_GROUP = 'umask 022; { read -r _ <&3; kill -KILL 0; } > /dev/null 2>&1 & exec 3<&-; exec env "$@"';

export interface ProgramOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program and returns its stdout. Throws if it fails. The program and its children are killed on abort, and when this process ends. */
export async function runProgram(options: ProgramOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await tryProgram(options);
  if (exitCode === 0) return stdout;
  const lastLines = (stderr.trim() || stdout.trim()).split("\n").slice(-12).join("\n");
  throw new SluiceError({
    code: "PROGRAM_FAILED",
    message: `${options.program} exited with status ${exitCode}:\n${lastLines}`,
    details: { program: options.program, exitCode },
  });
}

/** Like runProgram, but returns a failure instead of throwing. Rejects only when the program cannot be started, or on abort. */
export async function tryProgram({ program, args, extraEnvironment = {}, onLine, signal }: ProgramOptions): Promise<ProgramOutput> {
  signal?.throwIfAborted();
  // `detached` creates a new process group, so that an abort also kills grandchildren.
  const variables = Object.entries(extraEnvironment).map(([name, value]) => `${name}=${value}`);
  const child = spawn("sh", ["-c", RUN_IN_GROUP, "sh", ...variables, program, ...args], {
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
      // the program has already exited
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
  /** Only builds set this, before the root has its final name. */
  readonly writable?: boolean;
  /** More directories to mount read-only: path inside to path on the host. */
  readonly binds?: Readonly<Record<string, string>>;
  readonly workingDirectory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs a program of the root file system in new namespaces, without network and without this process's environment. Returns its stdout. */
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
    ...Object.entries(binds).flatMap(([inside, onHost]) => ["--ro-bind", onHost, inside]),
    ...Object.entries(variables).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--chdir", workingDirectory, "--", ...args],
  ];
}

import { runProgram } from "./run-program.ts";

export interface InsideOptions {
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
export async function runInside(options: InsideOptions): Promise<string> {
  return await runProgram({ program: "bwrap", args: insideArguments(options), signal: options.signal });
}

export function insideArguments({
  rootfs,
  args,
  writable = false,
  binds = {},
  workingDirectory = "/sandbox",
  environment = {},
}: InsideOptions): string[] {
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

import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { toBpf } from "../../sandbox/seccomp/to-bpf.ts";
import { listInheritedDescriptors } from "./list-inherited-descriptors.ts";
import { readChildProgram } from "./read-child-program.ts";

const run = promisify(execFile);

/**
 * How children are started. Descriptor 3 is the channel. In namespaces, bwrap tells the pid of the first process on descriptor 4, reads the filter of
 * system calls from descriptor 5, and hands on neither.
 */
export interface ChildCommand {
  readonly isolation: MontyIsolation;
  readonly file: string;
  readonly cwd: string;
  readonly seccomp: Buffer | null;
  arguments(dataBytes: number): string[];
}

export type MontyIsolation = "namespaces" | "process-only";

export interface ChildCommandOptions {
  readonly isolation: MontyIsolation;
  readonly bwrapPath: string;
}

/** What a child needs beyond the memory of scripts: Node itself, and the JavaScript values that a result is for a moment. */
export const BASE_DATA_BYTES: number = 128 * 1024 * 1024;

const nodeFlags = ["--jitless", "--v8-pool-size=0", "--no-warnings", "--input-type=module", "--eval"];

/** `ulimit` takes KiB. No core files: a crash is expected here, and its image would hold the script's data. */
const withLimits = ["-c", 'ulimit -c 0 && ulimit -d "$1" && shift && exec "$@"', "sh"];

export async function createChildCommand({ isolation, bwrapPath }: ChildCommandOptions): Promise<ChildCommand> {
  const program = await readChildProgram();
  const packages = await findPackages();
  const node = await realpath(process.execPath);
  const limited = (dataBytes: number, command: readonly string[]): string[] => [
    ...withLimits,
    String(Math.ceil(dataBytes / 1024)),
    ...command,
  ];
  if (isolation === "process-only") {
    return {
      isolation,
      file: "/bin/sh",
      cwd: packages.root,
      seccomp: null,
      arguments: (dataBytes) => limited(dataBytes, [node, ...nodeFlags, withoutInherited(program)]),
    };
  }
  const libraries = await findLibraries([node, packages.addonFile]);
  const inNamespaces = [bwrapPath, ...toBwrapArguments({ node, libraries, packages }), "--", "/app/node", ...nodeFlags];
  const seccomp = toBpf(process.arch === "arm64" ? "aarch64" : "x86_64");
  return {
    isolation,
    file: "/bin/sh",
    cwd: "/",
    seccomp,
    arguments: (dataBytes) => limited(dataBytes, [...inNamespaces, withoutInherited(program)]),
  };
}

/** The child closes what it should not have before it does anything else: no shell that is everywhere can close a descriptor past 9. */
function withoutInherited(program: string): string {
  const inherited = listInheritedDescriptors();
  if (inherited.length === 0) return program;
  return `import { closeSync as sluiceClose } from "node:fs"; for (const fd of ${JSON.stringify(inherited)}) try { sluiceClose(fd); } catch {}\n${program}`;
}

interface MontyPackages {
  /** The directory from which `@pydantic/monty` is found. */
  readonly root: string;
  readonly directory: string;
  readonly addonName: string;
  readonly addonDirectory: string;
  readonly addonFile: string;
}

async function findPackages(): Promise<MontyPackages> {
  const entry = await realpath(fileURLToPath(import.meta.resolve("@pydantic/monty")));
  const addonName = `monty-${process.platform}-${process.arch}-gnu`;
  try {
    const manifest = await realpath(createRequire(entry).resolve(`@pydantic/${addonName}/package.json`));
    const { main } = createRequire(manifest)(manifest) as { main: string };
    const addonDirectory = dirname(manifest);
    return {
      root: dirname(dirname(dirname(dirname(entry)))),
      directory: dirname(entry),
      addonName,
      addonDirectory,
      addonFile: join(addonDirectory, main),
    };
  } catch (cause) {
    throw new NoSandboxError({
      code: "MONTY_UNAVAILABLE",
      message: `The interpreter of execute has no build for ${process.platform}-${process.arch}: @pydantic/${addonName} is not installed.`,
      hint: "Run `npm install` on Linux (glibc, x64 or arm64), or set the engine to cpython.",
      cause,
    });
  }
}

/** The shared libraries of these files, as the loader itself finds them. */
async function findLibraries(files: readonly string[]): Promise<string[]> {
  const { stdout } = await run("ldd", [...files], { env: {}, timeout: 10_000 });
  return [...new Set(stdout.match(/(?<=\s)\/\S+(?= \(0x)/g) ?? [])];
}

interface BwrapFacts {
  readonly node: string;
  readonly libraries: readonly string[];
  readonly packages: MontyPackages;
}

/**
 * Namespaces of its own for everything, and a root with nothing in it but Node, its libraries and Monty: no /proc, no /dev, no /etc. The user is nobody
 * inside; also for a host that runs as root, where it is root's own number without any right. System calls are those of the sandboxes for CPython.
 */
function toBwrapArguments({ node, libraries, packages }: BwrapFacts): string[] {
  const readOnly = (from: string, to: string): string[] => ["--ro-bind", from, to];
  return [
    ...["--die-with-parent", "--new-session", "--info-fd", "4", "--seccomp", "5"],
    ...["--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--hostname", "monty", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--clearenv"],
    ...libraries.flatMap((path) => readOnly(path, path)),
    ...readOnly(node, "/app/node"),
    ...readOnly(packages.directory, "/app/node_modules/@pydantic/monty"),
    ...readOnly(packages.addonDirectory, `/app/node_modules/@pydantic/${packages.addonName}`),
    ...["--remount-ro", "/", "--chdir", "/app"],
  ];
}

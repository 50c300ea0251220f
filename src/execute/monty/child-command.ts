import { execFile } from "node:child_process";
import { readFile, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { limitingShell, listInheritedDescriptors, toLimitedArguments } from "../../concurrency/limited-command.ts";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import type { ExecuteSettings } from "../engine.ts";
import { nodeSeccompPolicy } from "../../sandbox/seccomp/policy.ts";
import { toBpf } from "../../sandbox/seccomp/to-bpf.ts";

const run = promisify(execFile);

/**
 * How to start a child process. Descriptor 3 is its channel. With namespaces, bwrap writes the pid of the first process to descriptor 4 and reads the
 * seccomp filter from descriptor 5; the child inherits neither.
 */
export interface ChildCommand {
  readonly isolation: MontyIsolation;
  readonly file: string;
  readonly cwd: string;
  readonly seccomp: Buffer | null;
  arguments(dataBytes: number): string[];
}

export type MontyIsolation = ExecuteSettings["isolation"];

export interface ChildCommandOptions {
  readonly isolation: MontyIsolation;
  readonly bwrapPath: string;
}

/** Memory of a child besides that of the script: Node itself, and the JavaScript values while a result is converted. */
export const BASE_DATA_BYTES: number = 128 * 1024 * 1024;

const nodeFlags = ["--jitless", "--v8-pool-size=0", "--no-warnings", "--input-type=module", "--eval"];

/** Locates Node and Monty and builds the command for children. Throws a NoSandboxError if Monty has no build for this platform. */
export async function createChildCommand({ isolation, bwrapPath }: ChildCommandOptions): Promise<ChildCommand> {
  const program = await readChildProgram();
  const packages = await findPackages();
  const node = await realpath(process.execPath);
  const isProcessOnly = isolation === "process-only";
  const command = isProcessOnly ? [node] : [bwrapPath, ...(await toBwrapArguments(node, packages)), "--", "/app/node"];
  return {
    isolation,
    file: limitingShell,
    cwd: isProcessOnly ? packages.root : "/",
    seccomp: isProcessOnly ? null : toBpf(process.arch === "arm64" ? "aarch64" : "x86_64", nodeSeccompPolicy),
    arguments: (dataBytes) => toLimitedArguments(dataBytes, [...command, ...nodeFlags, withoutInherited(program)]),
  };
}

/** Makes the child close inherited descriptors before it does anything else. */
function withoutInherited(program: string): string {
  const inherited = listInheritedDescriptors(LAST_PASSED);
  if (inherited.length === 0) return program;
  return `import { closeSync as sluiceClose } from "node:fs"; for (const fd of ${JSON.stringify(inherited)}) try { sluiceClose(fd); } catch {}\n${program}`;
}

interface MontyPackages {
  /** The directory from which `@pydantic/monty` can be resolved. */
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
      message: `The Monty interpreter is not available for ${process.platform}-${process.arch}: @pydantic/${addonName} is not installed.`,
      hint: `Install @pydantic/${addonName} in the version of @pydantic/monty (Linux with glibc, x64 or arm64), or set the engine to cpython.`,
      cause,
    });
  }
}

/** The shared libraries that the dynamic loader would load for these files. */
async function findLibraries(files: readonly string[]): Promise<string[]> {
  const { stdout } = await run("ldd", [...files], { env: {}, timeout: 10_000 });
  return [...new Set(stdout.match(/(?<=\s)\/\S+(?= \(0x)/g) ?? [])];
}

const namespaces = [
  ...["--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"],
  ...["--uid", "65534"],
];

/**
 * Separate namespaces and a read-only root that contains only Node, its libraries and Monty: no /proc, no /dev, no /etc. The user inside is nobody,
 * without capabilities, even if the host process runs as root. The seccomp filter is the one of the CPython sandboxes, plus epoll.
 */
async function toBwrapArguments(node: string, packages: MontyPackages): Promise<string[]> {
  const libraries = await findLibraries([node, packages.addonFile]);
  const readOnly = (from: string, to: string): string[] => ["--ro-bind", from, to];
  return [
    ...["--die-with-parent", "--new-session", "--info-fd", "4", "--seccomp", "5"],
    ...[...namespaces, "--unshare-cgroup-try", "--hostname", "monty", "--gid", "65534", "--cap-drop", "ALL", "--clearenv"],
    ...libraries.flatMap((path) => readOnly(path, path)),
    ...readOnly(node, "/app/node"),
    ...readOnly(packages.directory, "/app/node_modules/@pydantic/monty"),
    ...readOnly(packages.addonDirectory, `/app/node_modules/@pydantic/${packages.addonName}`),
    ...["--remount-ro", "/", "--chdir", "/app"],
  ];
}

/** Checks that bwrap can create the namespaces of a child. Throws a NoSandboxError with the reason if not. */
export async function checkIsolation(bwrapPath: string): Promise<void> {
  if (process.platform !== "linux") throw noNamespaces(`namespaces need Linux, and this is ${process.platform}`);
  const args = [...namespaces, "--ro-bind", "/", "/", "--", "/bin/true"];
  try {
    await run(bwrapPath, args, { timeout: 10_000, env: {}, cwd: "/" });
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    throw noNamespaces(code === "ENOENT" ? `the program ${bwrapPath} was not found` : stderr?.trim() || message, error);
  }
}

function noNamespaces(why: string, cause?: unknown): NoSandboxError {
  return new NoSandboxError({
    code: "MONTY_ISOLATION_UNAVAILABLE",
    message: `Monty cannot be isolated in namespaces: ${why}.`,
    hint: 'Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or set isolation: "process-only" and accept that a script that breaks out of Monty has the rights of this user.',
    cause,
  });
}

/** Descriptors up to this one are passed on purpose: standard streams, the channel, and two for bwrap. */
const LAST_PASSED = 5;

/**
 * The source of `monty-process`, with the modules that it imports embedded as data: URLs. The child runs with `--jitless` (no memory that is both writable
 * and executable), which disables WebAssembly, and Node needs WebAssembly to strip types.
 */
function readChildProgram(): Promise<string> {
  return readModule(join(import.meta.dirname, `monty-process${extname(import.meta.filename)}`));
}

async function readModule(path: string): Promise<string> {
  let text = extname(path) === ".ts" ? await stripTypes(path) : await readFile(path, "utf8");
  for (const [specifier, name = ""] of text.matchAll(/(?<=from )"(\.[\w./-]+)"/g)) {
    const inner = await readModule(join(dirname(path), name));
    text = text.replace(specifier, `"data:text/javascript;base64,${Buffer.from(inner).toString("base64")}"`);
  }
  return text;
}

/** Used only when running from the TypeScript sources. Runs in a separate process, because this Node function prints an experimental warning. */
async function stripTypes(path: string): Promise<string> {
  const program = `import { readFileSync } from "node:fs"; import { stripTypeScriptTypes } from "node:module";
    process.stdout.write(stripTypeScriptTypes(readFileSync(process.argv[1], "utf8")));`;
  const { stdout } = await run(process.execPath, ["--no-warnings", "--input-type=module", "--eval", program, path], { env: {} });
  return stdout;
}

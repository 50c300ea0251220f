import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { NoSandboxError } from "../../errors/sluice-error.ts";
import { toBpf } from "../../sandbox/seccomp/to-bpf.ts";

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
  const isAlone = isolation === "process-only";
  const command = isAlone ? [node] : [bwrapPath, ...(await toBwrapArguments(node, packages)), "--", "/app/node"];
  return {
    isolation,
    file: "/bin/sh",
    cwd: isAlone ? packages.root : "/",
    seccomp: isAlone ? null : toBpf(process.arch === "arm64" ? "aarch64" : "x86_64"),
    arguments: (dataBytes) => [...withLimits, String(Math.ceil(dataBytes / 1024)), ...command, ...nodeFlags, withoutInherited(program)],
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

const namespaces = [
  ...["--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"],
  ...["--uid", "65534"],
];

/**
 * Namespaces of its own for everything, and a root with nothing in it but Node, its libraries and Monty: no /proc, no /dev, no /etc. The user is nobody
 * inside; also for a host that runs as root, where it is root's own number without any right. System calls are those of the sandboxes for CPython.
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

/** Whether bwrap can make the namespaces that a child gets. Throws NoSandboxError, which says why not. */
export async function checkIsolation(bwrapPath: string): Promise<void> {
  if (process.platform !== "linux") throw noNamespaces(`namespaces are of Linux, this is ${process.platform}`);
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
    message: `The process for Monty cannot get namespaces of its own: ${why}.`,
    hint: 'Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or set isolation: "process-only" and accept that nothing but Monty itself then stands between a script and this user.',
    cause,
  });
}

const O_CLOEXEC = 0o2000000;
/** Those that every child gets on purpose: standard streams, its channel, and two for bwrap. */
const LAST_OWN = 5;

/**
 * Descriptors that any program we start would get from us. Node opens its own so that they are not among them; but what started us may have left some
 * open, and they go on from hand to hand.
 */
function listInheritedDescriptors(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number).filter(isInherited);
  } catch {
    return []; // no /proc
  }
}

function isInherited(descriptor: number): boolean {
  if (descriptor <= LAST_OWN) return false;
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1] ?? "0";
    return (parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // closed meanwhile: the one of this very look
  }
}

/**
 * The text of `monty-process`, with the modules of `child/` in it as data: urls. The child runs without a compiler (`--jitless`: no memory that is
 * writable and executable), and so without the WebAssembly that Node needs to read TypeScript.
 */
function readChildProgram(): Promise<string> {
  return readModule(join(import.meta.dirname, `monty-process${extname(import.meta.filename)}`));
}

async function readModule(path: string): Promise<string> {
  let text = extname(path) === ".ts" ? await stripTypes(path) : await readFile(path, "utf8");
  for (const [specifier, name = ""] of text.matchAll(/"(\.\/child\/[\w.-]+)"/g)) {
    const inner = await readModule(join(import.meta.dirname, name));
    text = text.replace(specifier, `"data:text/javascript;base64,${Buffer.from(inner).toString("base64")}"`);
  }
  return text;
}

/** Only where the sources themselves are run. In a process of its own, because this function of Node warns that it is new. */
async function stripTypes(path: string): Promise<string> {
  const program = `import { readFileSync } from "node:fs"; import { stripTypeScriptTypes } from "node:module";
    process.stdout.write(stripTypeScriptTypes(readFileSync(process.argv[1], "utf8")));`;
  const { stdout } = await run(process.execPath, ["--no-warnings", "--input-type=module", "--eval", program, path], { env: {} });
  return stdout;
}

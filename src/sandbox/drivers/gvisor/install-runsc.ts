import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { chmod, mkdir, open, rename, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SluiceError, UsageError } from "../../../errors/sluice-error.ts";
import { openBuildDirectory } from "../../snapshot/build-directory.ts";
import { type OnProgress, runStep } from "../../snapshot/progress.ts";
import { describeAge, describeRunsc, verifiedRunsc } from "./runsc.ts";

export interface InstallRunscOptions {
  readonly cacheDirectory: string;
  /** A file, or an `http:` or `https:` address. */
  readonly source: string;
  /** The expected hash of the program, in hexadecimal. */
  readonly sha512: string;
  /** Default: 512 MB, several times the size of a release. */
  readonly maxBytes?: number;
  readonly onProgress?: OnProgress;
  readonly signal: AbortSignal;
}

const MAX_BYTES = 512 * 1024 * 1024;

/**
 * Installs a runsc that the operator chose. It is used before every other one. Nothing of it runs before its hash was verified. On failure, the runsc that
 * was used before stays. Running servers keep the one that they started with.
 */
export async function installRunsc(options: InstallRunscOptions): Promise<void> {
  const { cacheDirectory, source, onProgress, signal } = options;
  const sha512 = options.sha512.toLowerCase();
  if (!/^[\da-f]{128}$/.test(sha512))
    throw new UsageError({
      code: "WRONG_USAGE",
      message: `--sha512 must be the 128 hexadecimal digits of a SHA-512 hash, not ${JSON.stringify(options.sha512.slice(0, 140))}.`,
      hint: "gVisor publishes it next to the program, as runsc.sha512.",
    });
  await runStep("gVisor (runsc)", onProgress, async () => {
    await using build = await openBuildDirectory(cacheDirectory);
    const received = join(build.directory, "runsc");
    const { hash, bytes } = await receive(options, received);
    if (hash !== sha512) throw refused(source, `its SHA-512 hash is ${hash}, and --sha512 says ${sha512}`);
    if (!(await isLinuxProgram(received))) throw refused(source, "it is not a program for Linux (ELF)");
    await chmod(received, 0o755);
    const runsc = await describeRunsc(received).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw refused(source, "it does not run on this machine", cause);
    });
    if (runsc.version === "unknown") throw refused(source, "`--version` does not print the version of runsc");
    // The name contains the hash, and the link is replaced at once: a server that runs keeps the program that its memory image fits.
    const link = verifiedRunsc(cacheDirectory);
    const final = join(cacheDirectory, "tools", `runsc-${sha512.slice(0, 16)}`);
    await mkdir(join(cacheDirectory, "tools"), { recursive: true });
    await rename(received, final);
    await symlink(basename(final), join(build.directory, "link"));
    await rename(join(build.directory, "link"), link);
    return { value: undefined, detail: `${runsc.version}, ${describeAge(runsc)}`, bytes };
  });
}

/** Writes the program to a file and returns the hash of what was written. */
async function receive(
  { source, maxBytes = MAX_BYTES, signal }: InstallRunscOptions,
  file: string,
): Promise<{ hash: string; bytes: number }> {
  const hash = createHash("sha512");
  let bytes = 0;
  const count = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw refused(source, `it is larger than ${maxBytes} bytes`);
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(await openSource(source, signal), count, createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SluiceError) throw error;
    throw unreadable(source, describe(error), error);
  }
  return { hash: hash.digest("hex"), bytes };
}

async function openSource(source: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  if (!/^https?:\/\//i.test(source)) return createReadStream(source);
  const response = await fetch(source, { signal });
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel();
    throw unreadable(source, `the server answered with status ${response.status}`);
  }
  return response.body;
}

async function isLinuxProgram(file: string): Promise<boolean> {
  await using opened = await open(file);
  const { buffer, bytesRead } = await opened.read(Buffer.alloc(4), 0, 4, 0);
  return bytesRead === 4 && buffer.toString("latin1") === "\x7fELF";
}

function refused(source: string, why: string, cause?: unknown): SluiceError {
  return new SluiceError({ code: "RUNSC_REFUSED", message: `${source} was not installed: ${why}.`, cause });
}

function unreadable(source: string, why: string, cause?: unknown): SluiceError {
  return new SluiceError({ code: "RUNSC_UNREADABLE", message: `${source} could not be read: ${why}.`, cause });
}

/** fetch reports the reason as the cause. */
function describe(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== "" ? `${message} (${cause.message})` : message;
}

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { parseArgs } from "node:util";
import type { CellInput } from "../../cells/cell-inputs.ts";
import { cacheDirectory, searchPath } from "../../config/environment.ts";
import { createRuntime } from "../../create-runtime.ts";
import { formatOf } from "../../data/data-formats.ts";
import { splitReaderOptions, toReaderExample } from "../../data/reader-options.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { runPythonInSandbox } from "../../interpreter/run-python-in-sandbox.ts";
import { dataFileEndings } from "../../protocol/data-files.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import { helperNames, isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import { maxTimeMs } from "../../protocol/setting.ts";
import type { SandboxLimits } from "../../sandbox/contract.ts";
import { defaultLimits, defaultSandboxSettings, sandboxSettingsSchema, withLimits, type SandboxSettings } from "../../sandbox/limits.ts";
import { describeOutcome, describeTiming, toOutcomeJson } from "../describe-outcome.ts";
import { exitStatus } from "../exit-status.ts";
import { print, toTerminal, wrongUsage } from "../terminal.ts";
import { checkWritable, writeArtifacts } from "../write-artifacts.ts";

const driverNames: readonly string[] = sandboxSettingsSchema.shape.driver.unwrap().options;

export const runUsage = `Usage: sluice run SCRIPT.py [OPTIONS]

Runs a Python script as one cell, in a sandbox without network, and prints its output and result.
Use - as SCRIPT.py to read the script from standard input.

  --input ALIAS=FILE   give a file to the script as the variable ALIAS; repeatable. .json and .jsonl
                       become plain values, .csv, .tsv, .parquet and .xlsx DataFrames, .txt a string.
                       How a CSV or TSV file is written is recognized, or given with the file:
                       'sales.csv?delimiter=%3B&decimal=%2C&encoding=windows-1252'
  --expect KINDS       fail unless the script emits exactly these: image, chart or image,chart
  --driver NAME        ${driverNames.join(", ")}; default: auto, the strongest that works
  --timeout-s N        time limit of the script in seconds; default: ${defaultLimits.cellTimeoutMs / 1000}
  --memory-mb N        memory of the sandbox in MB; default: ${defaultLimits.memoryBytes / 2 ** 20}
  --out DIR            directory for figures and charts; default: sluice-out
  --json               print only the outcome, as one JSON document
  --quiet              print no probes (one log line at the start and one at the end)

The script can use set_result(value), save_figure(alt, title=None, fig=None), inputs, pd, np, plt
and sm without importing them. The last expression is the result if set_result is not called.

Example: sluice run mean.py --input prices=prices.csv --out figures

Exit status: 0 success, 1 the script failed, 2 wrong usage, 3 no sandbox available, 130 interrupted.
`;

export async function runCommand(args: string[], signal: AbortSignal): Promise<number> {
  const options = parseRunArguments(args);
  await checkWritable(options.out);
  const inputs = await Promise.all(options.inputs.map(async ([alias, file]) => [alias, await readInput(alias, file, signal)] as const));
  const code = await readScriptFile(options.script, signal);
  const outcome = await runOnce(options, code, inputs, signal);
  const artifacts = outcome.status === "ok" ? await writeArtifacts(outcome.artifacts, options.out) : [];
  if (options.json) await print(`${toOutcomeJson(outcome, artifacts)}\n`);
  else {
    await print(describeOutcome(outcome, artifacts));
    process.stderr.write(`${describeTiming(outcome)}\n`);
  }
  return outcome.status === "ok" ? exitStatus.ok : exitStatus.failed;
}

async function runOnce(
  options: ReturnType<typeof parseRunArguments>,
  code: string,
  inputs: readonly (readonly [string, CellInput])[],
  signal: AbortSignal,
): Promise<CellOutcome> {
  const { driver, limits } = options;
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), searchPath: searchPath(), driver, limits, poolSize: 0 });
  const cellSession = await runtime.openCellSession({ signal });
  for (const [alias, input] of inputs) cellSession.bind(alias, input);
  return await runPythonInSandbox({
    cellSession,
    turnId: randomUUID(),
    code,
    expect: options.expect,
    onProbe: (line) => options.quiet || process.stderr.write(`${line}\n`),
    onOutput: (stream, text) => options.json || writeOutput(stream === "stdout" ? process.stdout : process.stderr, text),
    signal,
  });
}

/** Writes the output of a cell unchanged to a file or pipe, and with control characters made visible to a terminal. */
function writeOutput(stream: NodeJS.WriteStream, text: string): void {
  stream.write(stream.isTTY ? toTerminal(text) : text);
}

/** Python and its libraries do not start with less. */
const minMemoryMb = 64;

/** Parses the arguments of `sluice run`. Throws a UsageError. */
export function parseRunArguments(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      input: { type: "string", multiple: true, default: [] },
      expect: { type: "string" },
      driver: { type: "string", default: defaultSandboxSettings.driver },
      "timeout-s": { type: "string" },
      "memory-mb": { type: "string" },
      out: { type: "string", default: "sluice-out" },
      json: { type: "boolean", default: false },
      quiet: { type: "boolean", default: false },
    },
  });
  const { out, json, quiet } = values;
  const [script] = positionals;
  if (script === undefined || positionals.length !== 1) throw wrong(`expected one script, got ${positionals.length}.`);
  if (!driverNames.includes(values.driver)) throw wrong(`--driver must be one of ${driverNames.join(", ")}, not ${values.driver}.`);
  if (out === "") throw wrong("--out needs a directory.");
  return {
    script,
    inputs: toInputs(values.input),
    expect: values.expect === undefined ? undefined : toKinds(values.expect),
    driver: values.driver as SandboxSettings["driver"],
    limits: toLimits(values["timeout-s"], values["memory-mb"]),
    out,
    json,
    quiet,
  };
}

function toInputs(texts: readonly string[]): (readonly [string, string])[] {
  const inputs = new Map<string, string>();
  for (const text of texts) {
    const at = text.indexOf("=");
    if (at <= 0 || at === text.length - 1) throw wrong(`--input must be ALIAS=FILE, not ${text}.`);
    const alias = text.slice(0, at);
    if (!isPythonIdentifier(alias)) throw wrong(`--input ${alias}: the alias must be a Python name such as prices_1.`);
    const reserved = whyReserved(alias, [...helperNames]);
    if (reserved !== null) throw wrong(`--input ${alias}: the alias is ${reserved}. Choose another one, such as ${alias}_1.`);
    if (inputs.has(alias)) throw wrong(`--input ${alias} is given twice.`);
    inputs.set(alias, text.slice(at + 1));
  }
  return [...inputs];
}

function toKinds(text: string): ("image" | "chart")[] {
  const kinds = text
    .split(",")
    .map((kind) => kind.trim())
    .filter(Boolean);
  for (const kind of kinds) if (kind !== "image" && kind !== "chart") throw wrong(`--expect must be image, chart or both, not ${kind}.`);
  if (kinds.length === 0) throw wrong("--expect must be image, chart or both.");
  return [...new Set(kinds)] as ("image" | "chart")[];
}

/** Returns the limits of the sandbox. Its lifetime is at least the time limit of the cell plus a minute. */
function toLimits(timeoutS: string | undefined, memoryMb: string | undefined): SandboxLimits {
  const seconds = toNumber("--timeout-s", timeoutS);
  const megabytes = toNumber("--memory-mb", memoryMb);
  const maxSeconds = Math.floor(maxTimeMs / 1000);
  if (seconds !== undefined && seconds > maxSeconds) throw wrong(`--timeout-s must be at most ${maxSeconds}, not ${timeoutS}.`);
  if (megabytes !== undefined && megabytes < minMemoryMb) throw wrong(`--memory-mb must be at least ${minMemoryMb}, not ${memoryMb}.`);
  const cellTimeoutMs = seconds === undefined ? defaultLimits.cellTimeoutMs : Math.ceil(seconds * 1000);
  return withLimits({
    cellTimeoutMs,
    leaseTimeoutMs: Math.min(maxTimeMs, Math.max(defaultLimits.leaseTimeoutMs, cellTimeoutMs + 60_000)),
    memoryBytes: megabytes === undefined ? defaultLimits.memoryBytes : Math.ceil(megabytes * 1024 * 1024),
  });
}

function toNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value) || value <= 0) throw wrong(`${flag} must be a positive number, not ${text}.`);
  return value;
}

function wrong(message: string): UsageError {
  return wrongUsage("run", message);
}

/** Reads the code of a cell from a file, or from standard input for `-`. Accepts UTF-8 with or without a byte order mark, like Python. */
export async function readScriptFile(script: string, signal: AbortSignal): Promise<string> {
  const bytes = await readBytes(script, "the script", signal);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const message = `The script ${script === "-" ? "on standard input" : script} is not UTF-8 text.`;
    throw new UsageError({ code: "SCRIPT_NOT_TEXT", message, cause });
  }
}

export async function readInput(alias: string, file: string, signal: AbortSignal): Promise<CellInput> {
  const { path, reader } = await splitReaderOptions(file);
  const format = formatOf(path);
  if (format === null) throw wrong(`--input ${alias}=${file}: supported extensions are ${dataFileEndings.join(", ")}.`);
  const bytes = await readBytes(path, `the input ${alias}`, signal);
  return { format, bytes, reader, readerExample: toReaderExample(`--input ${alias}=`, path) };
}

/** Reads a file, or standard input for `-`. */
async function readBytes(file: string, what: string, signal: AbortSignal): Promise<Buffer> {
  try {
    if (file !== "-") return await readFile(file, { signal });
    return Buffer.concat(await Array.fromAsync(addAbortSignal(signal, process.stdin) as AsyncIterable<Buffer>));
  } catch (cause) {
    signal.throwIfAborted();
    const { code = "", message: reason } = cause as NodeJS.ErrnoException;
    const message = `Cannot read ${what} from ${file === "-" ? "standard input" : file}: ${reasons[code] ?? reason}.`;
    throw new UsageError({ code: "FILE_NOT_READ", message, cause });
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
};

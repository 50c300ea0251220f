import { randomUUID } from "node:crypto";
import { cacheDirectory, searchPath } from "../../config/environment.ts";
import { createRuntime } from "../../create-runtime.ts";
import type { CellInput } from "../../cells/cell-inputs.ts";
import { runPythonInSandbox } from "../../interpreter/run-python-in-sandbox.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import { print, toTerminal, wrongUsage } from "../terminal.ts";
import { describeOutcome, describeTiming, toOutcomeJson } from "../describe-outcome.ts";
import { exitStatus } from "../exit-status.ts";
import { checkDirectory, writeArtifacts } from "../write-artifacts.ts";
import { parseArgs } from "node:util";
import { UsageError } from "../../errors/sluice-error.ts";
import { helperNames, isPythonIdentifier, whyReserved } from "../../protocol/python-names.ts";
import type { SandboxLimits } from "../../sandbox/contract.ts";
import { maxTimeMs } from "../../protocol/setting.ts";
import { defaultLimits, defaultSandboxSettings, sandboxSettingsSchema, withLimits, type SandboxSettings } from "../../sandbox/limits.ts";
import { readFile } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import { formatOf } from "../../data/data-formats.ts";
import { dataFileEndings } from "../../protocol/data-files.ts";

export const runUsage = `Usage: sluice run SCRIPT.py [--input ALIAS=FILE]… [--expect image,chart] [--driver auto|gvisor|gvisor-rootless|bubblewrap]
                  [--timeout-s N] [--memory-mb N] [--out DIR] [--json] [--quiet]

Runs one cell in a sandbox. SCRIPT.py may be - for standard input.
Inputs: .json (plain values), .csv, .tsv and .parquet (DataFrames), .txt (text); each is a global and inputs["ALIAS"].
In the cell: set_result(value), save_figure(alt, title=None, fig=None), inputs, pd, np, plt, sm.
--json prints the outcome as one JSON document and nothing else on standard output. --quiet leaves out the probe lines.
Exit status: 0 ok, 1 the cell failed, 2 wrong usage, 3 no sandbox can be had, 130 interrupted.
`;

export async function runCommand(args: string[], signal: AbortSignal): Promise<number> {
  const options = parseRunArguments(args);
  await checkDirectory(options.out);
  const inputs = await Promise.all(options.inputs.map(async ([alias, file]) => [alias, await readInput(alias, file, signal)] as const));
  const code = await readScript(options.script, signal);
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
    ...(options.expect && { expect: options.expect }),
    onProbe: (line) => options.quiet || process.stderr.write(`${line}\n`),
    onOutput: (stream, text) => options.json || show(stream === "stdout" ? process.stdout : process.stderr, text),
    signal,
  });
}

/** As it is into a file or a pipe; what a terminal would obey is only shown there. */
function show(stream: NodeJS.WriteStream, text: string): void {
  stream.write(stream.isTTY ? toTerminal(text) : text);
}

const driverNames: readonly string[] = sandboxSettingsSchema.shape.driver.unwrap().options;
/** With less, Python and its libraries do not even start. */
const minMemoryMb = 64;

/** What was typed after `sluice run`, or a UsageError that says what is wrong with it. */
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
  if (script === undefined || positionals.length !== 1) throw wrong(`one script is needed, ${positionals.length} were given.`);
  if (!driverNames.includes(values.driver)) throw wrong(`--driver ${values.driver} is none of ${driverNames.join(", ")}.`);
  if (out === "") throw wrong("--out needs a directory.");
  return {
    script,
    inputs: toInputs(values.input),
    ...(values.expect === undefined ? {} : { expect: toKinds(values.expect) }),
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
    if (at <= 0 || at === text.length - 1) throw wrong(`--input ${text} is not ALIAS=FILE.`);
    const alias = text.slice(0, at);
    if (!isPythonIdentifier(alias)) throw wrong(`--input ${alias}: an alias is a Python name, like prices_1.`);
    const reserved = whyReserved(alias, [...helperNames]);
    if (reserved !== null) throw wrong(`--input ${alias}: this is ${reserved}; choose another alias, like ${alias}_1.`);
    if (inputs.has(alias)) throw wrong(`--input ${alias} was given twice.`);
    inputs.set(alias, text.slice(at + 1));
  }
  return [...inputs];
}

function toKinds(text: string): ("image" | "chart")[] {
  const kinds = text
    .split(",")
    .map((kind) => kind.trim())
    .filter((kind) => kind !== "");
  for (const kind of kinds) if (kind !== "image" && kind !== "chart") throw wrong(`--expect ${kind} is neither image nor chart.`);
  if (kinds.length === 0) throw wrong("--expect needs image, chart or both.");
  return [...new Set(kinds)] as ("image" | "chart")[];
}

/** A sandbox that lives for one cell lives as long as the cell may. */
function toLimits(timeoutS: string | undefined, memoryMb: string | undefined): SandboxLimits {
  const seconds = toNumber("--timeout-s", timeoutS);
  const megabytes = toNumber("--memory-mb", memoryMb);
  const maxSeconds = Math.floor(maxTimeMs / 1000);
  if (seconds !== undefined && seconds > maxSeconds) throw wrong(`--timeout-s ${timeoutS} is too long, at most ${maxSeconds}.`);
  if (megabytes !== undefined && megabytes < minMemoryMb) throw wrong(`--memory-mb ${memoryMb} is too little, at least ${minMemoryMb}.`);
  const cellTimeoutMs = seconds === undefined ? defaultLimits.cellTimeoutMs : Math.ceil(seconds * 1000);
  return withLimits({
    cellTimeoutMs,
    leaseTimeoutMs: Math.min(maxTimeMs, Math.max(defaultLimits.leaseTimeoutMs, cellTimeoutMs + 60_000)),
    ...(megabytes === undefined ? {} : { memoryBytes: Math.ceil(megabytes * 1024 * 1024) }),
  });
}

function toNumber(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value) || value <= 0) throw wrong(`${flag} ${text} is not a positive number.`);
  return value;
}

function wrong(message: string): UsageError {
  return wrongUsage("run", message);
}

/** The code of a cell from a file, or from standard input for `-`. Python reads files as UTF-8, with or without a byte order mark; so does this. */
export async function readScript(script: string, signal: AbortSignal): Promise<string> {
  const bytes = script === "-" ? await readStandardInput(signal) : await readNamed(script, "The script", signal);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const message = `The script ${script === "-" ? "on standard input" : script} is not UTF-8 text.`;
    throw new UsageError({ code: "SCRIPT_NOT_TEXT", message, cause });
  }
}

export async function readInput(alias: string, file: string, signal: AbortSignal): Promise<CellInput> {
  const format = formatOf(file);
  if (format === null) throw wrong(`--input ${alias}=${file}: known are ${dataFileEndings.join(", ")}.`);
  return { format, bytes: await readNamed(file, `The input ${alias}`, signal) };
}

async function readStandardInput(signal: AbortSignal): Promise<Buffer> {
  try {
    return Buffer.concat(await Array.fromAsync(addAbortSignal(signal, process.stdin) as AsyncIterable<Buffer>));
  } catch (error) {
    signal.throwIfAborted();
    throw notRead("The script", "standard input", error);
  }
}

async function readNamed(file: string, what: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readFile(file, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw notRead(what, file, error);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a directory",
  EACCES: "permission was denied",
};

function notRead(what: string, from: string, cause: unknown): UsageError {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  return new UsageError({ code: "FILE_NOT_READ", message: `${what} cannot be read from ${from}: ${reasons[code] ?? message}.`, cause });
}

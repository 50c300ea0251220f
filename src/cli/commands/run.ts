import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { cacheDirectory } from "../../config/cache-directory.ts";
import { createRuntime } from "../../create-runtime.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import type { InputFormat, SessionInput } from "../../interpreter/open-session.ts";
import { runPythonInSandbox } from "../../interpreter/run-python-in-sandbox.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import type { DriverName, SandboxLimits } from "../../sandbox/contract.ts";
import { withLimits } from "../../sandbox/limits.ts";
import { describeOutcome, describeTiming } from "../describe-outcome.ts";
import { toOutcomeJson } from "../outcome-json.ts";
import { writeArtifacts } from "../write-artifacts.ts";

export const runUsage = `Usage: sluice run SCRIPT.py [--input ALIAS=FILE]… [--expect image,chart] [--driver auto|gvisor|gvisor-rootless|bubblewrap]
                  [--timeout-s N] [--memory-mb N] [--out DIR] [--json] [--quiet]

Runs one cell in a sandbox. SCRIPT.py may be - for standard input.
Inputs: .json (plain values), .csv, .tsv and .parquet (DataFrames), .txt (text); each is a global and inputs["ALIAS"].
In the cell: set_result(value), save_figure(alt, title=None, fig=None), inputs, pd, np, plt, sm.
--json prints the outcome as one JSON document and nothing else on standard output. --quiet leaves out the probe lines.
Exit status: 0 ok, 1 the cell failed, 2 wrong usage, 3 no sandbox can be had.
`;

const formats: Readonly<Record<string, InputFormat>> = {
  ".json": "json",
  ".csv": "csv",
  ".tsv": "tsv",
  ".parquet": "parquet",
  ".txt": "text",
};
const driverNames = ["auto", "gvisor", "gvisor-rootless", "bubblewrap"];

interface RunOptions {
  readonly script: string;
  readonly inputs: readonly [alias: string, file: string][];
  readonly expect?: readonly ("image" | "chart")[];
  readonly driver: DriverName | "auto";
  readonly limits: SandboxLimits;
  readonly out: string;
  readonly json: boolean;
  readonly quiet: boolean;
}

export async function runCommand(args: string[], signal: AbortSignal): Promise<number> {
  const options = parse(args);
  const code = await readScript(options.script);
  const inputs = await Promise.all(options.inputs.map(async ([alias, file]) => [alias, await readInput(alias, file)] as const));
  const outcome = await runOnce({ options, code, inputs, signal });
  const artifacts = outcome.status === "ok" ? await writeArtifacts(outcome.artifacts, options.out) : [];
  if (options.json) await print(`${toOutcomeJson(outcome, artifacts)}\n`);
  else {
    await print(describeOutcome(outcome, artifacts));
    process.stderr.write(`${describeTiming(outcome)}\n`);
  }
  return outcome.status === "ok" ? 0 : 1;
}

interface Run {
  readonly options: RunOptions;
  readonly code: string;
  readonly inputs: readonly (readonly [string, SessionInput])[];
  readonly signal: AbortSignal;
}

async function runOnce({ options, code, inputs, signal }: Run): Promise<CellOutcome> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), driver: options.driver, limits: options.limits, poolSize: 0 });
  const session = await runtime.openSession({ signal });
  for (const [alias, input] of inputs) session.bind(alias, input);
  return await runPythonInSandbox({
    session,
    turnId: randomUUID(),
    code,
    inputAliasCount: inputs.length,
    inputsBytes: inputs.reduce((sum, [, { bytes }]) => sum + bytes.length, 0),
    ...(options.expect && { expect: options.expect }),
    onProbe: (line) => options.quiet || process.stderr.write(`${line}\n`),
    onOutput: (stream, text) => {
      if (!options.json) (stream === "stdout" ? process.stdout : process.stderr).write(text);
    },
    signal,
  });
}

function parse(args: string[]): RunOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      input: { type: "string", multiple: true, default: [] },
      expect: { type: "string" },
      driver: { type: "string", default: "auto" },
      "timeout-s": { type: "string" },
      "memory-mb": { type: "string" },
      out: { type: "string", default: "sluice-out" },
      json: { type: "boolean", default: false },
      quiet: { type: "boolean", default: false },
    },
  });
  const [script] = positionals;
  if (script === undefined || positionals.length !== 1) throw wrong(`one script is needed, ${positionals.length} were given.`);
  if (!driverNames.includes(values.driver)) throw wrong(`--driver ${values.driver} is none of ${driverNames.join(", ")}.`);
  const seconds = positive("--timeout-s", values["timeout-s"]);
  const megabytes = positive("--memory-mb", values["memory-mb"]);
  return {
    script,
    inputs: values.input.map(toInput),
    ...(values.expect === undefined ? {} : { expect: toKinds(values.expect) }),
    driver: values.driver as RunOptions["driver"],
    limits: withLimits({
      ...(seconds === undefined ? {} : { cellTimeoutMs: seconds * 1000 }),
      ...(megabytes === undefined ? {} : { memoryBytes: megabytes * 1024 * 1024 }),
    }),
    out: values.out,
    json: values.json,
    quiet: values.quiet,
  };
}

function toInput(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at <= 0 || at === text.length - 1) throw wrong(`--input ${text} is not ALIAS=FILE.`);
  const alias = text.slice(0, at);
  if (!/^[A-Za-z_]\w*$/.test(alias)) throw wrong(`--input ${alias}: an alias is a Python name, like prices_1.`);
  return [alias, text.slice(at + 1)];
}

function toKinds(text: string): ("image" | "chart")[] {
  const kinds = text
    .split(",")
    .map((kind) => kind.trim())
    .filter((kind) => kind !== "");
  for (const kind of kinds) if (kind !== "image" && kind !== "chart") throw wrong(`--expect ${kind} is neither image nor chart.`);
  return [...new Set(kinds)] as ("image" | "chart")[];
}

function positive(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw wrong(`${flag} ${text} is not a positive number.`);
  return value;
}

async function readScript(script: string): Promise<string> {
  if (script === "-") return Buffer.concat(await Array.fromAsync(process.stdin as AsyncIterable<Buffer>)).toString("utf8");
  return (await readNamed(script, "The script")).toString("utf8");
}

async function readInput(alias: string, file: string): Promise<SessionInput> {
  const format = formats[path.extname(file).toLowerCase()];
  if (format === undefined) throw wrong(`--input ${alias}=${file}: known are ${Object.keys(formats).join(", ")}.`);
  return { format, bytes: await readNamed(file, `The input ${alias}`) };
}

async function readNamed(file: string, what: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const reason =
      error instanceof Error && "code" in error && error.code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new UsageError({ code: "FILE_NOT_READ", message: `${what} cannot be read from ${file}: ${reason}.`, cause: error });
  }
}

function wrong(message: string): UsageError {
  return new UsageError({ code: "WRONG_USAGE", message, hint: "sluice run --help shows how it is called." });
}

/** Waits until the text is really out: a pipe may take less than all of it at once. */
async function print(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())));
}

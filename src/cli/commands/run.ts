import { randomUUID } from "node:crypto";
import { cacheDirectory } from "../../config/cache-directory.ts";
import { searchPath } from "../../config/search-path.ts";
import { createRuntime } from "../../create-runtime.ts";
import type { SessionInput } from "../../interpreter/session-inputs.ts";
import { runPythonInSandbox } from "../../interpreter/run-python-in-sandbox.ts";
import type { CellOutcome } from "../../protocol/outcome.ts";
import { print } from "../print.ts";
import { describeOutcome, describeTiming } from "../describe-outcome.ts";
import { toOutcomeJson } from "../outcome-json.ts";
import { parseRunArguments, type RunArguments } from "../parse-run-arguments.ts";
import { readInput, readScript } from "../read-run-files.ts";
import { toTerminal } from "../to-terminal.ts";
import { checkDirectory, writeArtifacts } from "../write-artifacts.ts";

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
  readonly options: RunArguments;
  readonly code: string;
  readonly inputs: readonly (readonly [string, SessionInput])[];
  readonly signal: AbortSignal;
}

async function runOnce({ options, code, inputs, signal }: Run): Promise<CellOutcome> {
  const { driver, limits } = options;
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), searchPath: searchPath(), driver, limits, poolSize: 0 });
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
    onOutput: (stream, text) => options.json || show(stream === "stdout" ? process.stdout : process.stderr, text),
    signal,
  });
}

/** As it is into a file or a pipe; what a terminal would obey is only shown there. */
function show(stream: NodeJS.WriteStream, text: string): void {
  stream.write(stream.isTTY ? toTerminal(text) : text);
}

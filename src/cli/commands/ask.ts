import { parseArgs } from "node:util";
import { bundledSample, openConfigured } from "../../config/open-configured.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import type { DatasetReference, StopReason, TurnResult } from "../../protocol/turn-result.ts";
import { escapeControls } from "../../text/json.ts";
import { runTurn } from "../../turn/run-turn.ts";
import { exitStatus } from "../exit-status.ts";
import { formatBytes } from "../progress-printer.ts";
import { print, toTerminal, wrongUsage } from "../terminal.ts";
import { createTerminalApproval } from "../terminal-approval.ts";
import { createTurnPrinter } from "../turn-printer.ts";
import { checkDirectory } from "../write-artifacts.ts";
import { listStored, writeTurn, type WrittenTurn } from "../write-turn.ts";

export const askUsage = `Usage: sluice ask "QUESTION" [--config FILE] [--model MODEL] [--json] [--out DIR] [--probes]

Answers a question: tools fetch, sandboxed Python derives, and the answer says what is missing.
The tools are those of mcpServers in sluice.config.json, which is looked for from the working directory upward; without one, a bundled sample of made-up
market data. --model demo needs no key, and no question.
--json prints the result as one JSON document and nothing else on standard output. --out writes pictures, the data behind the answer, its tables and the result
to a directory.
--probes writes the probe lines of tools and cells to standard error.
Exit status: 0 a complete answer, 4 a bounded or partial one, 1 the model failed, the turn was ended or --out cannot be written to, 2 wrong usage, 3 no sandbox
can be had.
`;

/** What the bundled script answers. */
const demoQuestion = "How did the total reserves of all venues change over two years, and how much of it was flow?";

/** Every other end is an answer, if not the whole one. */
const endOf: { readonly [Reason in StopReason]?: number } = {
  complete_answer: exitStatus.ok,
  model_error: exitStatus.failed,
  aborted: exitStatus.failed,
};

export async function askCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { question: asked, config, model: named, json, out, probes } = parse(args);
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false }); // what a provider cannot do is the plan's affair, not a person's
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: config, workingDirectory: process.cwd(), environment });
  if (out !== undefined) await checkDirectory(out);
  const name = named ?? loaded.configuration.model;
  const question = asked ?? (name === "demo" ? demoQuestion : missingQuestion());
  const say = (text: string): void => void process.stderr.write(text);
  await using turns = openConfigured({
    loaded,
    environment,
    workingDirectory: process.cwd(),
    ...(loaded.path === null && { servers: bundledSample() }),
    ...(probes && { onProbe: (line: string) => say(`${line}\n`) }),
  });
  const model = await turns.openModel(name, signal);
  say(`configuration: ${loaded.path ?? "no sluice.config.json was found; using the bundled sample"}\n`);

  const driver = await turns.runtime.driver(signal); // without a sandbox nothing is asked
  if (!json) say(`sandbox: ${driver.name}\n${asked === undefined ? `question: ${question}\n` : ""}`);
  turns.runtime.pool(signal).catch(() => {}); // gets warm while the model thinks; a failure is told to the cell that needs it
  const parts = turns.openConversation();
  const show = createTurnPrinter({ progress: say, answer: (text) => void process.stdout.write(text) });
  const approve = createTerminalApproval({ input: process.stdin, output: process.stderr });
  const result = await runTurn(turns.runtime, { ...parts, question, model, approve, signal, ...(json ? {} : { onEvent: show }) });
  const { openCellSession } = turns.runtime;
  let written: WrittenTurn = { result, files: listStored(result) };
  try {
    if (out !== undefined) written = await writeTurn({ ...parts, result, directory: out, openCellSession });
  } finally {
    await print(json ? `${escapeControls(JSON.stringify(written.result, null, 2))}\n` : describeEnd(written, written.result !== result));
  }
  return endOf[result.outcome.stopReason] ?? exitStatus.partial;
}

function parse(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: "string" },
      model: { type: "string" },
      json: { type: "boolean", default: false },
      out: { type: "string" },
      probes: { type: "boolean", default: false },
    },
  });
  if (positionals.length > 1) throw wrongUsage("ask", `one question is needed, ${positionals.length} were given: quote it.`);
  const question = positionals[0]?.trim();
  if (question === "") throw wrongUsage("ask", "the question is empty.");
  return { ...values, question };
}

/** What stands behind the answer. */
function describeEnd({ result, files }: WrittenTurn, isWritten: boolean): string {
  const { gaps, outcome, confidence, dataset } = result;
  return toTerminal(
    [
      "\n",
      ...files.map(({ what, file }) => `${what}: ${file}`),
      ...(gaps.length === 0 ? [] : ["gaps:", ...gaps.map(({ severity, detail }) => `  ${severity}: ${detail}`)]),
      `ended: ${outcome.stopReason}; confidence: ${confidence.level} (${confidence.reason})`,
      `used: ${describeUsage(result)}`,
      ...(dataset === null ? [] : [`data: ${isWritten ? dataset.publicDataUrl : describeKept(dataset)}`]),
      "",
    ].join("\n"),
  );
}

function describeKept({ datasetId, bytes }: DatasetReference): string {
  return `${datasetId}, ${formatBytes(bytes)}; --out DIR writes it as dataset.json, and its tables as CSV`;
}

function describeUsage({ usage, grounding }: TurnResult): string {
  const { steps, inputTokens, outputTokens, wallMs, sandboxMs } = usage;
  const { toolCallAttemptCount: calls, toolCallFailureCount: failures } = grounding;
  const tokens = inputTokens + outputTokens;
  return [
    `${steps} ${steps === 1 ? "step" : "steps"}`,
    `${calls} tool ${calls === 1 ? "call" : "calls"}${failures === 0 ? "" : ` (${failures} failed)`}`,
    `${(wallMs / 1000).toFixed(1)} s${sandboxMs === 0 ? "" : `, ${(sandboxMs / 1000).toFixed(1)} s of them in the sandbox`}`,
    ...(tokens === 0 ? [] : [`${tokens.toLocaleString("en-US")} tokens`]),
  ].join(", ");
}

function missingQuestion(): never {
  throw wrongUsage("ask", "a question is needed.");
}

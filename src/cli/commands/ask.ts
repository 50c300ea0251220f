import { parseArgs } from "node:util";
import { bundledSample, openConfigured } from "../../config/open-configured.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { refuseWhatDemoCannotAnswer } from "../../models/demo.ts";
import { demoQuestion } from "../../protocol/connect-model.ts";
import type { DatasetReference, StopReason, TurnResult } from "../../protocol/turn-result.ts";
import { escapeControls } from "../../text/json.ts";
import { runTurn } from "../../turn/run-turn.ts";
import { exitStatus } from "../exit-status.ts";
import { formatBytes, formatSeconds } from "../progress-printer.ts";
import { print, toTerminal, wrongUsage } from "../terminal.ts";
import { createTerminalApproval } from "../terminal-approval.ts";
import { createTurnPrinter } from "../turn-printer.ts";
import { checkWritable } from "../write-artifacts.ts";
import { listStored, writeTurn, type WrittenTurn } from "../write-turn.ts";

export const askUsage = `Usage: sluice ask "QUESTION" [OPTIONS]

Answers a question: tools fetch the data, sandboxed Python computes, and the answer says what is
missing. The tools come from mcpServers in sluice.config.json, which is searched from the working
directory upward. Without a configuration, a bundled sample with made-up market data is used.

  --config FILE   use this configuration
  --model MODEL   use this model; "demo" needs no API key and answers one question, which it asks itself
  --json          print only the result, as one JSON document
  --out DIR       write the figures, the data behind the answer and the result to this directory
  --probes        print probes (one log line per event of tools and cells) to standard error

Example: sluice ask --model demo

Exit status: 0 complete answer, 1 the model failed, the turn was aborted or --out is not writable,
2 wrong usage, 3 no sandbox available, 4 the answer is partial or a limit was reached.
`;

/** Exit statuses by stop reason. All other stop reasons give a partial answer. */
const exitStatusOf: { readonly [Reason in StopReason]?: number } = {
  complete_answer: exitStatus.ok,
  model_error: exitStatus.failed,
  aborted: exitStatus.failed,
};

export async function askCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { question: givenQuestion, config, model: givenModel, json, out, probes } = parse(args);
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false }); // warnings about unsupported features of a provider do not help the user
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: config, workingDirectory: process.cwd(), environment });
  if (out !== undefined) await checkWritable(out);
  const question = givenQuestion ?? ((givenModel ?? loaded.configuration.model) === "demo" ? demoQuestion : null);
  if (question === null) throw wrongUsage("ask", "a question is required.");
  const printProgress = (text: string): void => void process.stderr.write(text);
  await using configured = openConfigured({
    loaded,
    environment,
    workingDirectory: process.cwd(),
    servers: loaded.path === null ? bundledSample() : undefined,
    onProbe: probes ? (line) => printProgress(`${line}\n`) : undefined,
  });
  const model = await configured.openModel(givenModel, signal);
  const parts = configured.openConversation();
  refuseWhatDemoCannotAnswer({ model, question, evidence: parts.conversation.evidence });
  printProgress(`configuration: ${loaded.path ?? "no sluice.config.json found; using the bundled sample"}\n`);

  const driver = await configured.runtime.driver(signal); // fail before the first model call if there is no sandbox
  if (!json) printProgress(`sandbox: ${driver.name}\n${givenQuestion === undefined ? `question: ${question}\n` : ""}`);
  configured.runtime.pool(signal).catch(() => {}); // warm up while the model thinks; the first cell reports a failure
  const show = createTurnPrinter({ progress: printProgress, answer: (text) => void process.stdout.write(text) });
  const approve = createTerminalApproval({ input: process.stdin, output: process.stderr });
  const result = await runTurn(configured.runtime, { ...parts, question, model, approve, signal, onEvent: json ? undefined : show });
  const { openCellSession } = configured.runtime;
  let written: WrittenTurn = { result, files: listStored(result) };
  try {
    if (out !== undefined) written = await writeTurn({ ...parts, result, directory: out, openCellSession });
  } finally {
    await print(json ? `${escapeControls(JSON.stringify(written.result, null, 2))}\n` : describeEnd(written, written.result !== result));
  }
  return exitStatusOf[result.outcome.stopReason] ?? exitStatus.partial;
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
  if (positionals.length > 1) throw wrongUsage("ask", `expected one question, got ${positionals.length}. Put the question in quotes.`);
  const question = positionals[0]?.trim();
  if (question === "") throw wrongUsage("ask", "the question is empty.");
  return { ...values, question };
}

/** Describes the files, the gaps, the end and the cost of a turn. */
function describeEnd({ result, files }: WrittenTurn, isWritten: boolean): string {
  const { gaps: all, outcome, confidence, dataset, model } = result;
  // The answer says why a model failed.
  const gaps = all.filter(({ code }) => outcome.error === undefined || code !== outcome.stopReason);
  const because = outcome.error === undefined ? `; confidence: ${confidence.level} (${confidence.reason})` : "";
  return toTerminal(
    [
      "\n",
      ...files.map(({ what, file }) => `${what}: ${file}`),
      ...(gaps.length === 0 ? [] : ["gaps:", ...gaps.map(({ severity, detail }) => `  ${severity}: ${detail}`)]),
      `ended: ${outcome.stopReason}${because}`,
      ...(model === undefined ? [] : [`model: ${model}`]),
      `used: ${describeUsage(result)}`,
      ...(dataset === null ? [] : [`data: ${isWritten ? dataset.publicDataUrl : describeDataset(dataset)}`]),
      "",
    ].join("\n"),
  );
}

function describeDataset({ datasetId, bytes }: DatasetReference): string {
  return `${datasetId}, ${formatBytes(bytes)}; use --out DIR to save it as dataset.json with its tables as CSV`;
}

function describeUsage({ usage, grounding }: TurnResult): string {
  const { steps, inputTokens, outputTokens, wallMs, sandboxMs } = usage;
  const { toolCallAttemptCount: calls, toolCallFailureCount: failures } = grounding;
  const tokens = inputTokens + outputTokens;
  return [
    `${steps} ${steps === 1 ? "step" : "steps"}`,
    `${calls} tool ${calls === 1 ? "call" : "calls"}${failures === 0 ? "" : ` (${failures} failed)`}`,
    `${formatSeconds(wallMs)}${sandboxMs === 0 ? "" : `, ${formatSeconds(sandboxMs)} of it in the sandbox`}`,
    ...(tokens === 0 ? [] : [`${tokens.toLocaleString("en-US")} tokens`]),
  ].join(", ");
}

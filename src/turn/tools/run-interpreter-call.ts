import { renderChart } from "../../charts/render-chart.ts";
import { runCodeInterpreter, type CallOptions, type CodeInterpreterAnswer } from "../../interpreter/code-interpreter.ts";
import { runPythonCodeEdit } from "../../interpreter/python-code-edit.ts";
import { toModelAnswer } from "../../interpreter/to-model-answer.ts";
import type { CellStartEvent } from "../../protocol/turn-events.ts";
import type { Call } from "../ledger.ts";
import type { Turn } from "../open-turn.ts";
import { toChartText } from "../to-chart-text.ts";
import { answered, failedBy, refused, runCall, type CallOutcome } from "./run-call.ts";

type CellCall = Pick<Call, "callId" | "input">;

export async function callCodeInterpreter(turn: Turn, { callId, input }: CellCall): Promise<string> {
  const call = { callId, tool: "code_interpreter", input, intent: intentOf(input) } as const;
  return await runCall(turn, call, async () =>
    toOutcome(turn, "code_interpreter", await runCodeInterpreter(turn.interpreter, input, cellOptions(turn, call))),
  );
}

export async function callPythonCodeEdit(turn: Turn, { callId, input }: CellCall): Promise<string> {
  const call = { callId, tool: "python_code_edit", input, intent: intentOf(input) } as const;
  return await runCall(turn, call, async () =>
    toOutcome(turn, "python_code_edit", await runPythonCodeEdit(turn.interpreter, input, cellOptions(turn, call))),
  );
}

function cellOptions({ clock, emit, ledger }: Turn, { callId, tool }: Pick<CellStartEvent, "callId" | "tool">): CallOptions {
  return {
    signal: clock.stepsSignal,
    onCell: (call) => emit({ type: "cell-start", callId, step: ledger.steps, tool, ...call }),
    onOutput: (stream, text) => emit({ type: "cell-output", callId, stream, text }),
  };
}

export async function callRenderChart(turn: Turn, { callId, input }: CellCall): Promise<string> {
  return await runCall(turn, { callId, tool: "render_chart", input }, async () => {
    const { evidence, readChartRows: readRows } = turn.conversation;
    const answer = await renderChart({ input, evidence, artifacts: turn.request.artifacts, readRows, signal: turn.clock.stepsSignal });
    if (!answer.ok) return failedBy(answer.envelope);
    const { artifact } = answer;
    turn.ledger.addChart(artifact);
    return answered(toChartText(artifact), { artifacts: [artifact] });
  });
}

/** The record of a cell is made here, where its answer is whole. */
function toOutcome(turn: Turn, tool: string, answer: CodeInterpreterAnswer): CallOutcome {
  const { outcome, envelope, artifacts, resultAlias } = answer;
  const text = toModelAnswer(answer, turn.conversation.evidence);
  turn.ledger.sandboxMs += outcome?.timing.totalMs ?? 0;
  if (outcome === null) return refused(envelope!, text);
  if (outcome.status !== "ok") {
    turn.ledger.failCell(tool);
    return failedBy(envelope!, text);
  }
  const replaces = addCell(turn, tool, answer);
  const aliases = resultAlias === null ? [] : [resultAlias];
  const base = envelope === null ? answered(text, { brief: toBrief(answer) }) : failedBy(envelope, text);
  return { ...base, aliases, artifacts, replaces };
}

function addCell(turn: Turn, tool: string, { artifacts, resultAlias, repair }: CodeInterpreterAnswer): string[] {
  const call = turn.interpreter.last!.call;
  const { inputAliases, reason } = call.postProcessingContract;
  const cell = {
    step: turn.ledger.steps,
    tool,
    code: call.code,
    inputAliases,
    reason,
    resultAlias,
    artifacts,
    sparse: repair?.because ?? null,
  };
  if (tool === "code_interpreter") turn.forcedEdits = 0; // a figure of its own
  return turn.ledger.addCell(cell);
}

function toBrief({ resultAlias, artifacts }: CodeInterpreterAnswer): string {
  return JSON.stringify({
    status: "ok",
    ...(resultAlias === null ? {} : { resultAlias }),
    artifacts: artifacts.map(({ kind, contentHash, title }) => ({ kind, contentHash, title })),
    note: "Cut to make room. The result is whole in Python under its alias.",
  });
}

function intentOf(input: unknown): string | undefined {
  const contract = (input as { postProcessingContract?: { reason?: unknown } } | null)?.postProcessingContract;
  return typeof contract?.reason === "string" ? contract.reason.slice(0, 300) : undefined;
}

import { createToolError, type ToolError } from "../../errors/tool-error.ts";
import { brokenOffNote, turnEndedNote } from "../../prompts/turn-prompts.ts";
import type { TurnPlan } from "../../protocol/turn-plan.ts";
import { toSentences } from "../../models/describe-model-failure.ts";
import type { ModelFailure, StopReason } from "../../protocol/turn-result.ts";
import { describeSpentModelBudget, type TurnBudgets, type TurnClock } from "../budgets.ts";
import { asSentence } from "../describe-error.ts";
import type { ChartRecord, Ledger } from "../ledger.ts";
import type { TurnTools } from "../tools/turn-tools.ts";
import type { TurnParts } from "../turn-request.ts";
import { askModel, type ModelCall, type ModelReply } from "./ask-model.ts";
import type { CallGuard } from "./call-guard.ts";
import type { StepCall } from "./model-context.ts";
import { stillRunning, toAborted, toFailedCall, type CallResult, type TurnCalls } from "./turn-calls.ts";

/** Why the steps ended. `detail` is a sentence for the user; null for a complete answer. */
export interface StepsEnd {
  readonly stopReason: StopReason;
  readonly detail: string | null;
  /** With `model_error`, why the model failed. */
  readonly failure?: ModelFailure;
}

export interface StepsOptions extends Pick<
  TurnParts,
  "request" | "plan" | "maxSteps" | "budgets" | "clock" | "ledger" | "context" | "emit"
> {
  readonly instructions: string;
  readonly guard: CallGuard;
  readonly tools: TurnTools;
  readonly calls: TurnCalls;
}

/** Takes steps until the model has answered or has to be stopped. A step is one model call and the tool calls that it requests. */
export async function runSteps(options: StepsOptions): Promise<StepsEnd> {
  const { maxSteps, budgets, clock, ledger, context } = options;
  const forcedEdits: number[] = [];

  for (let step = 1; step <= maxSteps; step += 1) {
    const stopped = endByClock(clock, budgets);
    if (stopped !== null) return stopped;
    ledger.steps = step;
    const forcedTool = step === maxSteps ? "final_response" : chooseForcedRepair(ledger, forcedEdits);
    ledger.forcedTool = forcedTool;
    const { reply, calls } = await takeStep(options, step, forcedTool);

    const failed = endByClock(clock, budgets) ?? endByError(reply);
    if (failed !== null) return failed;
    context.addMessages(reply.messages, calls);
    const text = reply.text.trim();
    if (text !== "") ledger.lastText = text;
    const isAnswer = ledger.finalResponse !== null || (calls.length === 0 && text !== "" && forcedTool === null);
    const end = (isAnswer ? endByAnswer(options, step) : null) ?? endByGuard(options, step) ?? endByBudget(options);
    if (end !== null) return end;
  }
  return { stopReason: "bounded_step_budget", detail: `Step limit reached (${maxSteps}) before the model finished.` };
}

async function takeStep(
  options: StepsOptions,
  step: number,
  forcedTool: string | null,
): Promise<{ readonly reply: ModelReply; readonly calls: readonly StepCall[] }> {
  const { request, instructions, maxSteps, clock, ledger, context, tools, emit } = options;
  emit({ type: "step-start", step, of: maxSteps, forced: forcedTool ?? undefined });
  await tools.refresh();
  const reply = await askModel({
    model: request.model,
    instructions,
    messages: context.nextMessages(),
    tools: tools.schemas,
    forcedTool,
    step,
    tokens: ledger.tokens,
    signal: clock.stepsSignal,
  });
  const calls = withUniqueIds(reply.calls, ledger);
  await Promise.all(calls.map((call) => runCall(call, options)));
  return { reply, calls };
}

function withUniqueIds(calls: readonly ModelCall[], { requested }: Ledger): StepCall[] {
  const taken = new Set(requested.keys());
  return calls.map((call) => {
    let callId = call.callId;
    for (let copy = 2; taken.has(callId); copy += 1) callId = `${call.callId}#${copy}`;
    taken.add(callId);
    return { ...call, callId, providerCallId: call.callId };
  });
}

/** Runs one call of the model and records its result. Never rejects: a refused or failed call has a result that says so. */
async function runCall(modelCall: StepCall, { tools, calls, context, budgets, clock }: StepsOptions): Promise<void> {
  const { callId, problem } = modelCall;
  const signal = clock.stepsSignal;
  const { run, ...target } = tools.find(modelCall);
  const call = calls.request({ ...target, callId, ...(problem?.kind === "malformed" && { input: undefined }) });
  const result = await getResult();
  call.end(result);
  context.addResult(callId, result);

  async function getResult(): Promise<CallResult> {
    if (problem?.kind === "broken_off") return { ...toAborted(problem.reason), text: brokenOffNote, durationMs: 0 };
    if (problem?.kind === "malformed") return { ...toFailedCall("refused", malformedCall(modelCall.tool, problem.reason)), durationMs: 0 };
    if (problem !== null || run === null)
      return { ...toFailedCall("refused", tools.whyMissing(target.tool, problem?.reason)), durationMs: 0 };
    const refusal = call.admit();
    if (refusal !== null) return toFailedCall("refused", refusal);
    try {
      return (await settleAfterAbort(run(call), { signal, settleMs: budgets.settleMs })) ?? { ...stillRunning, text: turnEndedNote };
    } catch (error) {
      if (signal.aborted) return { ...toAborted("the turn ended"), text: turnEndedNote };
      const summary = error instanceof Error ? error.message : String(error);
      return toFailedCall("error", createToolError({ code: "INTERNAL_ERROR", tool: target.tool, summary }));
    }
  }
}

/** Returns null when the work is still running `settleMs` after the abort. */
async function settleAfterAbort<Value>(
  work: Promise<Value>,
  { signal, settleMs }: { signal: AbortSignal; settleMs: number },
): Promise<Value | null> {
  const { promise: timedOut, resolve } = Promise.withResolvers<null>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => void (timer = setTimeout(() => resolve(null), settleMs));
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  work.catch(() => {}); // a rejection after the timeout must not end the process
  try {
    return await Promise.race([work, timedOut]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  }
}

function malformedCall(tool: string, reason: string): ToolError {
  return createToolError({
    code: "SCHEMA_VALIDATION_FAILED",
    tool,
    summary: "The call was refused: its arguments are not valid JSON.",
    details: [{ path: "", issue: reason, received_type: "string" }],
  });
}

/** How often the model is forced to edit the code behind one flawed figure or chart before it becomes a gap. */
const MAX_FORCED_EDITS = 2;

/**
 * Forces a repair while something that was drawn has findings: an edit of the last cell if it drew it or if the chart shows its result, otherwise one
 * second render. Returns null when the model may choose.
 */
function chooseForcedRepair(ledger: Ledger, forcedEdits: number[]): "python_code_edit" | "render_chart" | null {
  const { editableCell, cells, flawedCharts, steps } = ledger;
  const isOfCell = ({ alias }: ChartRecord): boolean => editableCell !== null && alias === editableCell.resultAlias;
  if (editableCell !== null && (editableCell.findings.length > 0 || flawedCharts.some(isOfCell))) {
    const drawnIn = cells.findLast(({ tool }) => tool === "code_interpreter")?.step ?? 0;
    if (forcedEdits.filter((step) => step > drawnIn).length < MAX_FORCED_EDITS) {
      forcedEdits.push(steps);
      return "python_code_edit";
    }
  }
  const unrepaired = flawedCharts.filter((chart) => !chart.isForced && !isOfCell(chart));
  if (unrepaired.length === 0) return null;
  ledger.forceRender(unrepaired);
  return "render_chart";
}

/** Null while the turn may continue. */
export function endByClock(clock: Pick<TurnClock, "stopped">, { wallMs }: Pick<TurnBudgets, "wallMs">): StepsEnd | null {
  switch (clock.stopped()) {
    case "aborted":
      return { stopReason: "aborted", detail: "The turn was aborted before it finished." };
    case "time":
      return { stopReason: "bounded_time", detail: `The turn reached its time limit of ${wallMs / 1000} s before it finished.` };
    case null:
      return null;
  }
}

function endByError({ error }: ModelReply): StepsEnd | null {
  return error === null ? null : endByModel(error);
}

export function endByModel(failure: ModelFailure): StepsEnd {
  return { stopReason: "model_error", detail: toSentences(failure), failure };
}

/** In the last step the model can only answer, so whether it was finished is unknown, and the turn does not claim a complete answer. */
function endByAnswer({ plan, maxSteps, ledger }: StepsOptions, step: number): StepsEnd {
  if (ledger.finalResponse !== null && step === maxSteps)
    return {
      stopReason: "bounded_step_budget",
      detail: `Step limit reached (${maxSteps}). The answer was written before the analysis was finished.`,
    };
  return endByMissingPython(plan, ledger) ?? { stopReason: "complete_answer", detail: null };
}

/** The model answered, but the requested chart needs Python, and no sandbox is available. Null when nothing is missing. */
function endByMissingPython({ chartIntent }: TurnPlan, { calls, gaps, cells, artifacts }: Ledger): StepsEnd | null {
  const reason =
    calls.findLast(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE")?.failure?.reason ??
    gaps.find(({ code }) => code === "sandbox_unavailable")?.detail;
  const hasOutput = cells.length > 0 || artifacts.length > 0;
  if (reason === undefined || hasOutput || chartIntent !== "explicit") return null;
  return { stopReason: "capability_miss", detail: `This needs Python, but no sandbox is available. ${asSentence(reason)}` };
}

function endByGuard({ guard, ledger }: StepsOptions, step: number): StepsEnd | null {
  guard.judgeStep(ledger.calls.filter((call) => call.step === step));
  return guard.tripped;
}

/** All budgets except steps and time end a turn here, as `bounded_step_budget`. */
function endByBudget({ ledger, budgets }: StepsOptions): StepsEnd | null {
  const spent = describeSpentModelBudget(ledger, budgets);
  return spent === null ? null : { stopReason: "bounded_step_budget", detail: spent };
}

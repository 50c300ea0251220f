import type { ModelMessage } from "ai";
import type { TurnPlan } from "../../protocol/turn-plan.ts";
import type { StopReason } from "../../protocol/turn-result.ts";
import { overBudget, type TurnBudgets, type TurnClock } from "../budgets.ts";
import type { CallGuard } from "./call-guard.ts";
import type { TurnParts } from "../turn-request.ts";
import { asSentence } from "../describe-error.ts";
import type { Ledger } from "../ledger.ts";
import type { Observations } from "./observations.ts";
import type { TurnTools } from "../tools/turn-tools.ts";
import type { TurnCalls } from "./turn-calls.ts";
import { askModel, type AskedCall } from "./ask-model.ts";
import { compactMessages } from "./compact-messages.ts";
import { runTool } from "./run-tool.ts";

/** What ended the steps. `detail` is a sentence for the person who asked; null for a complete answer. */
export interface StepsEnd {
  readonly stopReason: StopReason;
  readonly detail: string | null;
}

export interface StepsOptions extends Pick<
  TurnParts,
  "request" | "plan" | "maxSteps" | "budgets" | "clock" | "ledger" | "observations" | "emit"
> {
  readonly instructions: string;
  /** What was said before the first step, the question last. */
  readonly messages: readonly ModelMessage[];
  readonly guard: CallGuard;
  readonly tools: TurnTools;
  readonly calls: TurnCalls;
}

/** Step after step until the model is done or must be stopped: ask the model, run the tools that it calls. */
export async function runSteps(options: StepsOptions): Promise<StepsEnd> {
  const { request, instructions, plan, maxSteps, budgets, clock, ledger, guard, observations, tools, calls, emit } = options;
  const signal = clock.stepsSignal;
  const forcedEdits: number[] = [];
  let history: HistoryEntry[] = [...options.messages];

  for (let step = 1; step <= maxSteps; step += 1) {
    const before = endByClock(clock, budgets);
    if (before !== null) return before;
    ledger.steps = step;
    const forced = step === maxSteps ? "final_response" : chooseEdit(ledger, forcedEdits);
    emit({ type: "step-start", step, of: maxSteps, forced: forced ?? undefined });
    observations.compact();
    history = compactMessages(history, budgets.saidBytes);
    await tools.refresh();
    const messages = toMessages(history, observations);
    const reply = await askModel({
      model: request.model,
      instructions,
      messages,
      tools: tools.schemas,
      forced,
      step,
      tokens: ledger.tokens,
      signal,
    });
    const running = { tools, calls, observations, settleMs: budgets.settleMs, signal };
    const asked = withOwnIds(reply.calls, ledger);
    await Promise.all(asked.map((call) => runTool(call, running)));

    const meanwhile = endByClock(clock, budgets);
    if (meanwhile !== null) return meanwhile;
    if (reply.error !== null) return { stopReason: "model_error", detail: `The model failed in step ${step}: ${reply.error}` };
    history.push(...reply.messages, { role: "answers", calls: asked });
    const text = reply.text.trim();
    if (text !== "") ledger.text = text;
    // Whether the model was done by itself cannot be told in the last step, so it is not claimed.
    if (ledger.final !== null && step === maxSteps) return { stopReason: "bounded_step_budget", detail: madeToAnswer(maxSteps) };
    if (ledger.final !== null || (reply.calls.length === 0 && text !== "" && forced === null))
      return missedCapability(plan, ledger) ?? { stopReason: "complete_answer", detail: null };
    guard.judgeStep(ledger.calls.filter((call) => call.step === step));
    if (guard.tripped !== null) return guard.tripped;
    const spent = overBudget(ledger.tokens, budgets);
    if (spent !== null) return { stopReason: "bounded_step_budget", detail: spent };
  }
  const used = maxSteps === 1 ? "1 step of this turn was" : `${maxSteps} steps of this turn were`;
  return { stopReason: "bounded_step_budget", detail: `The ${used} used before the model was done.` };
}

/** The messages so far. What the model reads of its calls is put in when it is asked, since it may have had to make room. */
type HistoryEntry = ModelMessage | { readonly role: "answers"; readonly calls: readonly StepCall[] };

/** `callId` is the turn's own and names one call only; `askedId` is what the provider knows it by. */
type StepCall = AskedCall & { readonly askedId: string };

function withOwnIds(calls: readonly AskedCall[], { begun }: Ledger): StepCall[] {
  const taken = new Set(begun.keys());
  return calls.map((call) => {
    let callId = call.callId;
    for (let copy = 2; taken.has(callId); copy += 1) callId = `${call.callId}#${copy}`;
    taken.add(callId);
    return { ...call, callId, askedId: call.callId };
  });
}

function toMessages(history: readonly HistoryEntry[], observations: Observations): ModelMessage[] {
  return history.flatMap((entry): ModelMessage[] => {
    if (entry.role !== "answers") return [entry];
    if (entry.calls.length === 0) return [];
    const content = entry.calls.map(({ callId, askedId, tool }) => {
      const { text, isError } = observations.get(callId)!;
      const output = { type: isError ? ("error-text" as const) : ("text" as const), value: text };
      return { type: "tool-result" as const, toolCallId: askedId, toolName: tool, output };
    });
    return [{ role: "tool", content }];
  });
}

/** How often the model is made to mend one sparse figure before it becomes a gap. */
const MAX_FORCED_EDITS = 2;

/** A sparse figure is mended next; null when the model may choose. `forcedEdits` has the steps in which it was made to before. */
function chooseEdit({ editable, cells, steps }: Ledger, forcedEdits: number[]): "python_code_edit" | null {
  if (editable === null || editable.sparse === null) return null;
  const drawnIn = cells.findLast(({ tool }) => tool === "code_interpreter")?.step ?? 0;
  if (forcedEdits.filter((step) => step > drawnIn).length >= MAX_FORCED_EDITS) return null;
  forcedEdits.push(steps);
  return "python_code_edit";
}

/** The model came to an end of its own, but the picture that was asked for needs Python, and there is none here. Null when nothing was missed. */
function missedCapability(plan: TurnPlan, { calls, gaps, cells, artifacts }: Ledger): StepsEnd | null {
  const reason =
    calls.findLast(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE")?.failure?.reason ??
    gaps.find(({ code }) => code === "sandbox_unavailable")?.detail;
  const isDrawn = cells.length > 0 || artifacts.length > 0;
  if (reason === undefined || isDrawn || plan.chartIntent !== "explicit") return null;
  return { stopReason: "capability_miss", detail: `This needs Python, and no sandbox can be had here. ${asSentence(reason)}` };
}

function madeToAnswer(steps: number): string {
  return `The model had to answer in the last of ${steps} ${steps === 1 ? "step" : "steps"}, done or not.`;
}

/** Null while the turn may go on. */
export function endByClock(clock: Pick<TurnClock, "stopped">, { wallMs }: Pick<TurnBudgets, "wallMs">): StepsEnd | null {
  switch (clock.stopped()) {
    case "aborted":
      return { stopReason: "aborted", detail: "The turn was ended from outside before it was done." };
    case "time":
      return { stopReason: "bounded_time", detail: `The ${wallMs / 1000} s of this turn were over before it was done.` };
    case null:
      return null;
  }
}

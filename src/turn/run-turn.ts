import { randomUUID } from "node:crypto";
import { disposeTurnSandbox, type InterpreterTurn } from "../interpreter/turn.ts";
import type { TurnResult } from "../protocol/turn-result.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { createTurnClock, withBudgets } from "./budgets.ts";
import { createCallGuard } from "./steps/call-guard.ts";
import type { TurnParts, TurnRequest, TurnRuntime } from "./turn-request.ts";
import { createConversation, type Exchange } from "./create-conversation.ts";
import { describeError } from "./describe-error.ts";
import { toFirstMessages, toInstructions } from "../prompts/instructions.ts";
import { Ledger } from "./ledger.ts";
import { createObservations } from "./steps/observations.ts";
import { buildBestEffortTerminalOutcome } from "./answer/build-best-effort-terminal-outcome.ts";
import { keepDataset } from "./keep-dataset.ts";
import { toTurnResult } from "./to-turn-result.ts";
import { planTurn } from "./plan-turn.ts";
import { endByClock, runSteps, type StepsEnd } from "./steps/run-steps.ts";
import { synthesize } from "./answer/synthesize.ts";
import { TurnTools } from "./tools/turn-tools.ts";
import { createTurnCalls } from "./steps/turn-calls.ts";

/**
 * A turn, from the question to its result: plan, steps, what is missing, the data behind it, the answer. It always ends with a result, whatever failed, and
 * nothing of it is left when it does. Rejects only when it could not begin.
 */
export async function runTurn(runtime: TurnRuntime, request: TurnRequest): Promise<TurnResult> {
  const { question, model, conversation = createConversation(), turnId = randomUUID() } = request;
  const budgets = withBudgets(request.budgets);
  using clock = createTurnClock(budgets, request.signal);
  const ledger = new Ledger();
  const observations = createObservations({ evidence: conversation.evidence, budgets });
  const emit = ignoreListenerErrors(request.onEvent);
  const earlierAliases = conversation.evidence.aliases();
  const interpreter = openInterpreter(runtime, request, { id: turnId, evidence: conversation.evidence });

  emit({ type: "turn-start", turnId, conversationId: conversation.id, question });
  const plan = await planTurn({ question, conversation, model, tokens: ledger.tokens, signal: clock.stepsSignal });
  const maxSteps = budgets.steps + (plan.chartIntent === "explicit" ? budgets.chartBoost : 0);
  emit({ type: "plan", plan, steps: maxSteps });

  const turn = { turnId, runtime, request, conversation, budgets, clock, ledger, observations, emit, earlierAliases, plan, maxSteps };
  const end = await takeSteps(turn, interpreter);
  const dataset = await keepDataset(turn, end);
  const outcome = buildBestEffortTerminalOutcome(turn, end);
  const { answer, stopReason, gaps } = await synthesize(turn, outcome);
  const result = toTurnResult(turn, { answer, stopReason, gaps, dataset });

  ignoreListenerErrors((exchange: Exchange) => conversation.add(exchange))({ turnId, question, answer });
  emit({ type: "turn-end", result });
  return result;
}

/** The sandbox is needed by the steps only, so it is gone before the answer is written. */
async function takeSteps(turn: TurnParts, interpreter: InterpreterTurn): Promise<StepsEnd> {
  const { runtime, request, conversation, clock, ledger, budgets } = turn;
  const signal = clock.stepsSignal;
  const { evidence } = conversation;
  const guard = createCallGuard();
  const calls = createTurnCalls({ ...turn, guard, evidence, policy: request.policy, approve: request.approve, signal });
  try {
    const librarian = await readLibrarianPrompt({ runtime, ledger, signal });
    const tools = new TurnTools({ ...turn, interpreter, calls, hasSandbox: librarian !== null, signal });
    const instructions = toInstructions({ ...turn, librarian });
    const messages = toFirstMessages(conversation, request.question, EARLIER_EXCHANGES);
    return await runSteps({ ...turn, instructions, messages, guard, tools, calls });
  } catch (error) {
    return endByClock(clock, budgets) ?? { stopReason: "model_error", detail: `The turn failed: ${describeError(error)}` };
  } finally {
    clock.endSteps();
    await closeSandbox(interpreter, ledger);
    calls.close();
  }
}

const EARLIER_EXCHANGES = 10;

/** Costs nothing until the first cell. */
function openInterpreter(
  runtime: TurnRuntime,
  { artifacts, onProbe }: TurnRequest,
  { id, evidence }: Pick<InterpreterTurn, "id" | "evidence">,
): InterpreterTurn {
  return runtime.createTurn({ id, evidence, artifacts, ...(onProbe && { onProbe: ignoreListenerErrors(onProbe) }) });
}

/** Null when there is no sandbox to be had: then there is no interpreter, and a gap says so. */
async function readLibrarianPrompt(options: { runtime: TurnRuntime; ledger: Ledger; signal: AbortSignal }): Promise<string | null> {
  const { runtime, ledger, signal } = options;
  try {
    return await orAbort(runtime.librarianPrompt(), signal);
  } catch (error) {
    const detail = `Python could not be used: ${describeError(error)}`;
    if (!signal.aborted) ledger.gaps.push({ code: "sandbox_unavailable", severity: "minor", detail });
    return null;
  }
}

async function closeSandbox(interpreter: InterpreterTurn, { gaps }: Ledger): Promise<void> {
  try {
    await disposeTurnSandbox(interpreter);
  } catch (error) {
    gaps.push({ code: "sandbox_not_closed", severity: "minor", detail: `The sandbox could not be ended: ${describeError(error)}` });
  }
}

/** A listener that throws or rejects cannot end a turn. */
function ignoreListenerErrors<Event>(listener: ((event: Event) => unknown) | undefined): (event: Event) => void {
  return (event) => {
    try {
      Promise.resolve(listener?.(event)).catch(() => {});
    } catch {
      // as above
    }
  };
}

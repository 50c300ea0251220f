import { randomUUID } from "node:crypto";
import { orAbort } from "../concurrency/or-abort.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../interpreter/interpreter-turn.ts";
import { refuseWhatDemoCannotAnswer } from "../models/demo.ts";
import { describeSilence } from "../models/describe-model-failure.ts";
import { describeToday, turnInstructions } from "../prompts/turn-prompts.ts";
import { toRecordedResult, type TurnResult } from "../protocol/turn-result.ts";
import { buildBestEffortTerminalOutcome } from "./answer/build-best-effort-terminal-outcome.ts";
import { synthesize } from "./answer/synthesize.ts";
import { createTurnClock, withBudgets } from "./budgets.ts";
import { createConversation, toModelMessages, type Exchange } from "./create-conversation.ts";
import { describeError } from "./describe-error.ts";
import { keepDataset } from "./keep-dataset.ts";
import { Ledger } from "./ledger.ts";
import { planTurn } from "./plan-turn.ts";
import { CallGuard } from "./steps/call-guard.ts";
import { createModelContext } from "./steps/model-context.ts";
import { endByClock, endByModel, runSteps, type StepsEnd } from "./steps/run-steps.ts";
import { createTurnCalls } from "./steps/turn-calls.ts";
import { toTurnResult } from "./to-turn-result.ts";
import { TurnTools } from "./tools/turn-tools.ts";
import type { TurnParts, TurnRequest, TurnRuntime } from "./turn-request.ts";

/** Exchanges of the conversation that the model reads in its steps. */
const EARLIER_EXCHANGES = 10;

/**
 * Runs a turn: plan, steps, dataset, gaps, answer. Returns a result whatever fails on the way, and leaves no sandbox, tool call or timer running.
 * Rejects only when the turn cannot start, also with MODEL_MISSING for what the demo cannot answer.
 */
export async function runTurn(runtime: TurnRuntime, request: TurnRequest): Promise<TurnResult> {
  const { question, model, subject, turnId = randomUUID() } = request;
  const given = request.conversation ?? createConversation();
  const conversation = subject === undefined ? given : given.forSubject(subject);
  const today = describeToday(new Date(), request.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  const { evidence } = conversation;
  refuseWhatDemoCannotAnswer({ model, question, evidence });
  const budgets = withBudgets(request.budgets);
  using clock = createTurnClock(budgets, request.signal);
  const ledger = new Ledger();
  const context = createModelContext({ evidence, budgets });
  const emit = ignoreListenerErrors(request.onEvent);
  const earlierAliases = evidence.aliases();
  const onProbe = request.onProbe && ignoreListenerErrors(request.onProbe);
  // Starts nothing: the sandbox starts with the first cell.
  const interpreter = runtime.createTurn({ id: turnId, evidence, artifacts: request.artifacts, onProbe });

  emit({ type: "turn-start", turnId, conversationId: conversation.id, question });
  const { plan, failure: planFailure } = await planTurn({
    today,
    question,
    conversation,
    model,
    tokens: ledger.tokens,
    signal: clock.stepsSignal,
  });
  const failure = planFailure ?? (clock.stopped() === "time" ? describeSilence(model, budgets.wallMs) : null);
  const maxSteps = budgets.steps + (plan.chartIntent === "explicit" ? budgets.chartBoost : 0);
  if (failure === null) emit({ type: "plan", plan, steps: maxSteps });

  const turn = { turnId, today, runtime, request, conversation, budgets, clock, ledger, context, emit, earlierAliases, plan, maxSteps };
  const end = failure === null ? await takeSteps(turn, interpreter) : endByModel(failure);
  const dataset = await keepDataset(turn, end);
  const outcome = buildBestEffortTerminalOutcome(turn, end);
  const { answer, ...ended } = await synthesize(turn, outcome);
  const result = toTurnResult(turn, { answer, ...ended, dataset });

  ignoreListenerErrors((exchange: Exchange) => conversation.add(exchange))({ turnId, question, answer });
  emit({ type: "turn-end", result: toRecordedResult(result) });
  return result;
}

/** Only the steps need the sandbox, so it is closed before the answer is written. */
async function takeSteps(turn: TurnParts, interpreter: InterpreterTurn): Promise<StepsEnd> {
  const { request, conversation, clock, ledger, context, budgets } = turn;
  const signal = clock.stepsSignal;
  const guard = new CallGuard();
  const calls = createTurnCalls({ ...turn, guard, signal });
  try {
    const librarian = await readLibrarianPrompt(turn);
    const tools = new TurnTools({ ...turn, interpreter, calls, hasSandbox: librarian !== null, signal });
    const instructions = turnInstructions({ ...turn, librarian, hasEarlierTurns: conversation.exchanges.length > 0 });
    context.addMessages(toModelMessages(conversation, request.question, EARLIER_EXCHANGES));
    return await runSteps({ ...turn, instructions, guard, tools, calls });
  } catch (error) {
    return endByClock(clock, budgets) ?? { stopReason: "model_error", detail: `The turn failed: ${describeError(error)}` };
  } finally {
    clock.endSteps();
    await closeSandbox(interpreter, ledger);
    calls.close();
  }
}

/** Returns null and adds a gap when no sandbox is available: the turn continues without Python. */
async function readLibrarianPrompt({ runtime, ledger, clock }: TurnParts): Promise<string | null> {
  const signal = clock.stepsSignal;
  try {
    return await orAbort(runtime.librarianPrompt(), signal);
  } catch (error) {
    const detail = `Python is not available: ${describeError(error)}`;
    if (!signal.aborted) ledger.gaps.push({ code: "sandbox_unavailable", severity: "minor", detail });
    return null;
  }
}

async function closeSandbox(interpreter: InterpreterTurn, { gaps }: Ledger): Promise<void> {
  try {
    await disposeTurnSandbox(interpreter);
  } catch (error) {
    gaps.push({ code: "sandbox_not_closed", severity: "minor", detail: `The sandbox could not be closed: ${describeError(error)}` });
  }
}

/** Wraps a listener so that neither an exception nor a rejection of it can end the turn. */
function ignoreListenerErrors<Event>(listener: ((event: Event) => unknown) | undefined): (event: Event) => void {
  return (event) => {
    try {
      Promise.resolve(listener?.(event)).catch(() => {});
    } catch {
      // ignored like a rejection
    }
  };
}

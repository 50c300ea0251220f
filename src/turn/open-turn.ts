import { randomUUID } from "node:crypto";
import type { InterpreterTurn } from "../interpreter/turn.ts";
import { disposeTurnSandbox } from "../interpreter/turn-sandbox.ts";
import type { TurnEvent } from "../protocol/turn-events.ts";
import type { TurnPlan } from "../protocol/turn-plan.ts";
import type { Gap } from "../protocol/turn-result.ts";
import type { ToolList } from "../tools/create-tool-catalog.ts";
import { withBudgets, type TurnBudgets } from "./budgets.ts";
import { createCallGuard, type CallGuard } from "./call-guard.ts";
import type { TurnRequest, TurnRuntime } from "./contract.ts";
import { createConversation, type Conversation, type Exchange } from "./create-conversation.ts";
import { describeError } from "./describe-error.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createObservations, type Observations } from "./observations.ts";
import { planByRules } from "./plan/plan-by-rules.ts";
import { createRunningTools, type RunningTools } from "./running-tools.ts";
import { createTurnClock, type TurnClock } from "./turn-clock.ts";

/** One turn while it runs. It has a lifetime: whoever opens it closes it. */
export interface Turn extends AsyncDisposable {
  readonly id: string;
  readonly request: TurnRequest;
  readonly runtime: TurnRuntime;
  readonly conversation: Conversation;
  readonly budgets: TurnBudgets;
  readonly clock: TurnClock;
  readonly ledger: Ledger;
  readonly guard: CallGuard;
  readonly observations: Observations;
  readonly running: RunningTools;
  readonly interpreter: InterpreterTurn;
  /** What was there before this turn. */
  readonly earlierAliases: readonly string[];
  /** Gaps that were met on the way. */
  readonly gaps: Gap[];
  /** Of servers, as they were when the last step began. */
  serverGaps: readonly Gap[];
  /** The servers that were away then. */
  away: ToolList["gaps"];
  /** The server of every tool that was there in some step, by each of its names. */
  readonly owners: Map<string, string>;
  plan: TurnPlan;
  /** How often the model was made to mend the last figure. */
  forcedEdits: number;
  emit(event: TurnEvent): void;
  /** What was said goes to the conversation, for later turns. */
  remember(exchange: Exchange): void;
  /** Awaits running tools as long as they may take, and ends the sandbox. Idempotent. */
  settle(): Promise<void>;
}

export function openTurn(runtime: TurnRuntime, request: TurnRequest): Turn {
  const id = request.turnId ?? randomUUID();
  const conversation = request.conversation ?? createConversation();
  const budgets = withBudgets(request.budgets);
  const clock = createTurnClock(budgets, request.signal);
  const running = createRunningTools();
  const gaps: Gap[] = [];
  const emit = heard<TurnEvent>(request.onEvent);
  const interpreter = runtime.createTurn({
    id,
    evidence: conversation.evidence,
    artifacts: request.artifacts,
    ...(request.onProbe && { onProbe: heard(request.onProbe) }),
  });
  const settleOnce = async (): Promise<void> => {
    await running.settle(budgets.settleMs);
    clock.endSteps();
    await disposeTurnSandbox(interpreter).catch((error: unknown) =>
      gaps.push({ code: "sandbox_not_closed", severity: "minor", detail: `The sandbox could not be ended: ${describeError(error)}` }),
    );
  };
  let settled: Promise<void> | null = null; // who ignores its signal is waited for once, whoever asks again
  const settle = (): Promise<void> => (settled ??= settleOnce());
  return {
    id,
    request,
    runtime,
    conversation,
    budgets,
    clock,
    ledger: createLedger(),
    guard: createCallGuard(),
    observations: createObservations(),
    running,
    interpreter,
    earlierAliases: conversation.evidence.aliases(),
    gaps,
    serverGaps: [],
    away: [],
    owners: new Map(),
    plan: planByRules(request.question, "nothing was planned yet"),
    forcedEdits: 0,
    emit,
    remember: heard((exchange: Exchange) => conversation.add(exchange)),
    settle,
    async [Symbol.asyncDispose]() {
      clock[Symbol.dispose]();
      await settle();
    },
  };
}

/** Who listens cannot end a turn, whether it throws or rejects: that is a listener's own failure. */
function heard<Told>(listen: ((told: Told) => unknown) | undefined): (told: Told) => void {
  return (told) => {
    try {
      Promise.resolve(listen?.(told)).catch(() => {});
    } catch {
      // as above
    }
  };
}

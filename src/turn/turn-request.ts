import type { LanguageModel } from "ai";
import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import type { CodeModeOptions, CodeModeTool } from "../execute/create-code-mode.ts";
import type { IdentityContext } from "../execute/identity/identity-context.ts";
import type { InterpreterTurn, TurnOptions as InterpreterTurnOptions } from "../interpreter/turn.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ApprovalRequestEvent, TurnEvent } from "../protocol/turn-events.ts";
import type { TurnPlan } from "../protocol/turn-plan.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import type { Approval, ToolPolicy } from "../tools/tool-policy.ts";
import type { TurnBudgets, TurnClock } from "./budgets.ts";
import type { Conversation } from "./create-conversation.ts";
import type { Ledger } from "./ledger.ts";
import type { Observations } from "./steps/observations.ts";

/** What a turn needs of a runtime. */
export interface TurnRuntime {
  createTurn(options: Omit<InterpreterTurnOptions, "source">): InterpreterTurn;
  createCodeMode(options: Omit<CodeModeOptions, "engines">): readonly CodeModeTool[];
  librarianPrompt(): Promise<string>;
  snapshot(): Promise<{ readonly id: string }>;
}

export interface TurnRequest {
  readonly question: string;
  readonly model: LanguageModel;
  /** Its evidence is reached by alias, and grows. A new one unless told. */
  readonly conversation?: Conversation | undefined;
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  /**
   * Asks a person about a call of a tool that says that it changes something and is not on the policy's list; calls of `execute`'s scripts too. The event
   * `approval-request` goes before. Without it the policy decides alone. `createApprovals` has one for who answers from elsewhere.
   */
  readonly approve?: ((request: ApprovalRequestEvent, signal: AbortSignal) => Promise<boolean | Approval>) | undefined;
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  readonly identity?: IdentityContext | undefined;
  readonly codeMode?: Pick<CodeModeOptions, "engine" | "limits"> | undefined;
  readonly budgets?: Partial<TurnBudgets> | undefined;
  readonly toolTimeoutMs?: number | undefined;
  readonly turnId?: string | undefined;
  /** What it throws is swallowed: who listens cannot end a turn. */
  readonly onEvent?: ((event: TurnEvent) => void) | undefined;
  readonly onProbe?: ProbeSink | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the phases of a turn share. Each takes the part that it uses. */
export interface TurnParts {
  readonly turnId: string;
  readonly runtime: TurnRuntime;
  readonly request: TurnRequest;
  readonly conversation: Conversation;
  /** What was there before this turn. */
  readonly earlierAliases: readonly string[];
  readonly plan: TurnPlan;
  /** How many there may be. */
  readonly maxSteps: number;
  readonly budgets: TurnBudgets;
  readonly clock: TurnClock;
  readonly ledger: Ledger;
  readonly observations: Observations;
  readonly emit: (event: TurnEvent) => void;
}

import type { LanguageModel } from "ai";
import type { ArtifactStore } from "../artifacts/artifact-store.ts";
import type { DatasetStore } from "../evidence/dataset/dataset.ts";
import type { CodeModeOptions, CodeModeTool } from "../execute/create-code-mode.ts";
import type { IdentityContext } from "../execute/identity/identity-context.ts";
import type { InterpreterTurn, InterpreterTurnOptions } from "../interpreter/interpreter-turn.ts";
import type { ProbeSink } from "../protocol/probe.ts";
import type { ApprovalRequestEvent, TurnEvent } from "../protocol/turn-events.ts";
import type { TurnPlan } from "../protocol/turn-plan.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import type { Approval, ToolPolicy } from "../tools/tool-policy.ts";
import type { TurnBudgets, TurnClock } from "./budgets.ts";
import type { Conversation } from "./create-conversation.ts";
import type { Ledger } from "./ledger.ts";
import type { ModelContext } from "./steps/model-context.ts";

/** The parts of a runtime that a turn uses. */
export interface TurnRuntime {
  createTurn(options: Omit<InterpreterTurnOptions, "source">): InterpreterTurn;
  createCodeMode(options: Omit<CodeModeOptions, "engines">): readonly CodeModeTool[];
  librarianPrompt(): Promise<string>;
  snapshot(): Promise<{ readonly id: string }>;
}

export interface TurnRequest {
  readonly question: string;
  /** The user's IANA time zone, for the current date in the prompts. Default: that of this process. */
  readonly timeZone?: string | undefined;
  readonly model: LanguageModel;
  /** The turn can use its evidence by alias, and adds to it. Default: a new conversation. */
  readonly conversation?: Conversation | undefined;
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  /**
   * Asks a person to approve a call to a tool that may change something and that the policy does not allow; also for calls of scripts. The event
   * `approval-request` is emitted first. Without it, the policy decides alone. Use `createApprovals` when the answer comes from elsewhere.
   */
  readonly approve?: ((request: ApprovalRequestEvent, signal: AbortSignal) => Promise<boolean | Approval>) | undefined;
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  readonly identity?: IdentityContext | undefined;
  /** Whom the turn acts for. If the conversation's last turn was for another subject, its evidence and exchanges are gone; see `Conversation.forSubject`. */
  readonly subject?: string | null | undefined;
  readonly codeMode?: Pick<CodeModeOptions, "engine" | "limits"> | undefined;
  readonly budgets?: Partial<TurnBudgets> | undefined;
  readonly toolTimeoutMs?: number | undefined;
  readonly turnId?: string | undefined;
  /** Errors of the listener are ignored. */
  readonly onEvent?: ((event: TurnEvent) => void) | undefined;
  readonly onProbe?: ProbeSink | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The data that the phases of a turn share. Each phase picks the fields that it uses. */
export interface TurnParts {
  readonly turnId: string;
  /** The current date, as a sentence for the model. */
  readonly today: string;
  readonly runtime: TurnRuntime;
  readonly request: TurnRequest;
  readonly conversation: Conversation;
  /** Aliases that existed before this turn. */
  readonly earlierAliases: readonly string[];
  readonly plan: TurnPlan;
  readonly maxSteps: number;
  readonly budgets: TurnBudgets;
  readonly clock: TurnClock;
  readonly ledger: Ledger;
  readonly context: ModelContext;
  readonly emit: (event: TurnEvent) => void;
}

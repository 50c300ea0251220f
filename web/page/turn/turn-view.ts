import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { ChatData } from "../../../src/protocol/http-chat.ts";
import type { TurnPlan } from "../../../src/protocol/turn-plan.ts";
import type { Gap, RecordedResult } from "../../../src/protocol/turn-result.ts";

export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

export interface CallView {
  readonly callId: string;
  readonly tool: string;
  readonly step: number;
  readonly startedAt: string;
  server?: string | undefined;
  intent?: string | undefined;
  /** The `execute` call whose script requested this one. */
  within?: string | undefined;
  arguments?: unknown;
  argumentsOmittedBytes?: number | undefined;
  cell?: ChatData["cell-start"];
  output: OutputPiece[];
  progress?: ChatData["tool-progress"];
  approval?: ChatData["approval-request"] & { answer?: "approved" | "refused" | "abandoned" };
  end?: ChatData["tool-end"];
  artifacts: string[];
}

/** The view of a turn, built from the parts of its message, while it runs and afterwards. */
export interface TurnView {
  readonly turnId: string;
  readonly conversationId: string;
  readonly isRunning: boolean;
  readonly startedAt: string | null;
  readonly plan: TurnPlan | null;
  readonly step: ChatData["step-start"] | null;
  readonly calls: readonly CallView[];
  /** The published artifacts, in order. */
  readonly artifacts: readonly ArtifactReference[];
  readonly answer: string;
  readonly gaps: readonly Gap[];
  readonly result: RecordedResult | null;
}

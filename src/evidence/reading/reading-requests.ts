import type { ErrorFacts } from "../../errors/sluice-error.ts";
import type { NamedData, PrecisionLoss, ToolOutput } from "../contract.ts";
import type { ReadPart } from "../output-part.ts";
import type { RowsAt, RowsQuestion } from "../rows-at.ts";
import type { CallIds, ReadMessage } from "./read-message.ts";

/** What the thread is asked. Plain data: it crosses from one thread to the other. */
export type ThreadRequest =
  /** Made of the pieces that came before under the same number. */
  | { readonly kind: "message"; readonly callIds: CallIds }
  /** JSON text in pieces, of a value that reached us parsed. */
  | { readonly kind: "value"; readonly precisionLoss: PrecisionLoss | undefined }
  /** `structured`: there are pieces too, the JSON text of a `structuredContent` that reached us parsed. */
  | {
      readonly kind: "output";
      readonly output: Pick<ToolOutput, "output" | "as" | "structuredJson">;
      readonly structured?: { readonly precisionLoss: PrecisionLoss | undefined };
    }
  /** Of JSON text in pieces. */
  | ({ readonly kind: "rows" } & RowsQuestion)
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "data"; readonly data: Pick<NamedData, "format" | "bytes" | "mimeType"> };

export type ThreadResult =
  | { readonly kind: "message"; readonly message: ReadMessage }
  | { readonly kind: "rows"; readonly found: RowsAt }
  | { readonly kind: "parts"; readonly parts: readonly ReadPart[] };

export type ThreadMessage =
  | { readonly id: number; readonly piece: Uint8Array }
  | { readonly id: number; readonly isDropped: true }
  | { readonly id: number; readonly request: ThreadRequest };

export type ThreadAnswer =
  | { readonly ok: true; readonly result: ThreadResult }
  /** `facts` of an error of ours. */
  | { readonly ok: false; readonly reason: string; readonly facts: ErrorFacts | null };

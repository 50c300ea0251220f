import type { AsyncLocalStorage } from "node:async_hooks";

/**
 * What one `tools/call` and the transport tell each other past the SDK, which has no place for it: headers of this call alone on the way out; on the way
 * back the HTTP status and `Retry-After` of a refusal, and the text of `structuredContent`, before parsing has rounded its numbers.
 */
export interface CallContext {
  readonly headers: Readonly<Record<string, string>>;
  /** Its answer is an output of a tool, which is read in a thread when it is large. */
  readonly isToolCall: boolean;
  /** Called when the stream that was to bring the answer has ended without it. */
  readonly onLost: (error: Error) => void;
  status?: number;
  retryAfter?: string | null;
  /** Of the message that held the answer. */
  answerBytes?: number;
  structuredJson?: string | undefined;
  /** What a thread has read of a large answer; the SDK gets only what is left beside it. */
  read?: object | undefined;
  /** Drops what a transport keeps for the call. */
  release?: () => void;
}

export type CallContexts = AsyncLocalStorage<CallContext>;

import { lookUpError, type ToolErrorCode, type ErrorCode } from "./error-table.ts";

/** What failed, with the value, and what to do about it. `code` is stable: callers branch on it. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  readonly message: string;
  /** What the reader can do about it, in one sentence. Default: the hint of the error table. */
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The base class of every error that this package throws. A failed cell is not an error: it is an outcome. */
export class SluiceError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor({ code, message, hint, details, cause }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = hint ?? lookUpError(code).hint;
    this.details = details ?? {};
  }
}

/** The caller made a mistake: a wrong flag, a wrong value, a missing file. Nothing was started, and a retry does not help. Exit status 2. */
export class UsageError extends SluiceError {}

/** This machine cannot provide the requested sandbox. Nothing was run. Follow `hint` before a retry. Exit status 3. */
export class NoSandboxError extends SluiceError {}

/** A running sandbox died, or broke the protocol and was killed. Its variables are lost; the caller can open a new sandbox. */
export class SandboxLostError extends SluiceError {}

/** Returns the error code that a model reads for a thrown error. */
export function toModelCode(error: unknown): ToolErrorCode {
  if (!(error instanceof SluiceError)) return "INTERNAL_ERROR";
  const { kind, modelCode, exit } = lookUpError(error.code);
  if (kind !== undefined) return error.code as ToolErrorCode;
  return modelCode ?? (exit === 3 ? "SANDBOX_UNAVAILABLE" : "INTERNAL_ERROR");
}

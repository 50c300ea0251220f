import { lookUpError, type ToolErrorCode, type ErrorCode } from "./error-table.ts";

/** What failed, with the value; then the next action. `code` is stable and is what callers branch on. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  readonly message: string;
  /** What the reader can do about it, as one sentence. */
  readonly hint?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The one base of every error this package throws. A failed cell is never one of these: it is an outcome. */
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

/** The caller asked for something that cannot be: wrong flag, wrong value, missing file. Nothing was started. Exit status 2. */
export class UsageError extends SluiceError {}

/** No sandbox can be had on this machine as asked. Nothing was run. A retry helps only after `hint` was followed. Exit status 3. */
export class NoSandboxError extends SluiceError {}

/** A sandbox that existed is gone, or broke the protocol and was ended. Its variables are lost; a new sandbox can be opened. */
export class SandboxLostError extends SluiceError {}

/** The code that a model reads of an error that was thrown. */
export function toModelCode(error: unknown): ToolErrorCode {
  if (!(error instanceof SluiceError)) return "INTERNAL_ERROR";
  const { kind, modelCode, exit } = lookUpError(error.code);
  if (kind !== undefined) return error.code as ToolErrorCode;
  return modelCode ?? (exit === 3 ? "SANDBOX_UNAVAILABLE" : "INTERNAL_ERROR");
}

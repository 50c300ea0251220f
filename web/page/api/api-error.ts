/** An error that the server answered with. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;

  constructor({ status, code, message, hint }: { status: number; code: string; message: string; hint?: string | undefined }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

export function describeFailure(error: unknown): { message: string; hint?: string | undefined } {
  if (error instanceof ApiError) return { message: error.message, hint: error.hint };
  return { message: error instanceof Error ? error.message : String(error) };
}

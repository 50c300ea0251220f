import { lookUpError } from "../errors/error-table.ts";

/** Exit statuses of the command. A printed error has the exit status of its code in the error table. */
export const exitStatus = {
  ok: 0,
  /** A cell, a check or a model failed. */
  failed: 1,
  wrongUsage: lookUpError("WRONG_USAGE").exit,
  noSandbox: lookUpError("NO_SANDBOX").exit,
  /** `sluice ask` gave a bounded or partial answer. */
  partial: 4,
  /** Interrupted by a signal. */
  interrupted: 130,
  /** The reader of the output closed the pipe. */
  pipeClosed: 141,
} as const;

import { lookUpError } from "../errors/error-table.ts";

/** What the command ends with. An error that is printed has the status of its code in the table of errors. */
export const exitStatus = {
  ok: 0,
  /** A cell, a check or a model failed. */
  failed: 1,
  wrongUsage: lookUpError("WRONG_USAGE").exit,
  noSandbox: lookUpError("NO_SANDBOX").exit,
  /** A bounded or partial answer of `sluice ask`. */
  partial: 4,
  /** By a signal, as shells count it. */
  interrupted: 130,
  /** Nobody reads the output any more. */
  pipeClosed: 141,
} as const;

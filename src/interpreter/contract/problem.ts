import type { EnvelopeCode } from "../../errors/envelope-table.ts";

/** One thing that is wrong with a call. All of them are collected, so that one repair can mend them all. */
export interface Problem {
  readonly code: EnvelopeCode;
  /** Into the arguments: `postProcessingContract.inputAliases[0]`. */
  readonly path: string;
  /** A whole sentence. */
  readonly issue: string;
  readonly receivedType: string;
  readonly line?: number;
  readonly column?: number;
  readonly hints?: readonly string[];
}

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

/** A value of the caller's in a sentence: quoted, and short whatever it is. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text);
}

/** One step down from `path`. */
export function below(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${quote(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

import { envelopeTable, type EnvelopeKind, type KindEntry } from "./envelope-table.ts";

/** What `get_envelope_contract()` answers: the table itself, so that it says what the code does. */
export interface EnvelopeContract {
  readonly contract_version: 1;
  readonly keys: readonly string[];
  readonly error_kinds: readonly {
    readonly error_kind: EnvelopeKind;
    readonly meaning: string;
    readonly error_codes: readonly { readonly error_code: string; readonly meaning: string; readonly retryable: boolean }[];
  }[];
}

export function getEnvelopeContract(): EnvelopeContract {
  const kinds = Object.entries(envelopeTable) as [EnvelopeKind, KindEntry][];
  return {
    contract_version: 1,
    keys: ["error_kind", "tool", "summary", "details", "hints", "examples", "error_code", "retryable", "_envelope_version", "_meta"],
    error_kinds: kinds.map(([error_kind, { meaning, codes }]) => ({
      error_kind,
      meaning,
      error_codes: Object.entries(codes).map(([error_code, entry]) => ({ error_code, ...entry })),
    })),
  };
}

import { describeSparseSeries } from "../prompts/interpreter-tools.ts";

/** A flaw of a figure or chart that the model must repair. If it is not repaired, it becomes a gap with this code. */
export interface Finding {
  readonly code: "low_coverage";
  /** A sentence, also shown to the user. */
  readonly detail: string;
}

/** Finds the flaws of what was drawn in the diagnostics of a cell or chart. */
export function toFindings(diagnostics: Readonly<Record<string, unknown>>, drawn: "figure" | "chart"): Finding[] {
  const sparse = toList(diagnostics["lowCoverage"]);
  return sparse.length === 0 ? [] : [{ code: "low_coverage", detail: describeSparseSeries(drawn, sparse) }];
}

export function describeFindings(findings: readonly Finding[]): string {
  return findings.map(({ detail }) => detail).join(" ");
}

/** Diagnostics come from a sandbox: anything but a list counts as empty. */
function toList(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
}

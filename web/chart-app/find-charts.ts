import type { ChartArtifact } from "../../src/protocol/artifact.ts";
import { checkChart } from "../../src/protocol/check-chart.ts";

export type FoundChart =
  | { readonly kind: "chart"; readonly chart: Pick<ChartArtifact, "spec" | "data" | "title"> }
  | { readonly kind: "broken"; readonly reasons: readonly string[] };

/** Finds the charts in a tool's structured content: the content itself, or its `chart`, `charts`, `artifact` or `artifacts`. Validates each. */
export function findCharts(content: unknown): FoundChart[] {
  return candidatesOf(content).map((candidate) => {
    const issues = checkChart(candidate["spec"], candidate["data"]);
    if (issues.length > 0) return { kind: "broken", reasons: issues.slice(0, 5).map(({ path, message }) => `${path}: ${message}`) };
    const { spec, data, title } = candidate as unknown as ChartArtifact;
    return { kind: "chart", chart: { spec, data, ...(typeof title === "string" ? { title } : {}) } };
  });
}

type Candidate = Record<string, unknown>;

function candidatesOf(content: unknown): Candidate[] {
  if (!isRecord(content)) return [];
  if (content["kind"] === "chart") return [content];
  const lists = ["charts", "artifacts"].flatMap((name): unknown[] => (Array.isArray(content[name]) ? content[name] : []));
  return [content["artifact"], content["chart"], ...lists].filter(
    (one): one is Candidate => isRecord(one) && (one["kind"] === "chart" || ("spec" in one && "data" in one)),
  );
}

function isRecord(value: unknown): value is Candidate {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

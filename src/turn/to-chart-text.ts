import type { ChartArtifact } from "../protocol/artifact.ts";

/** What a model reads of a chart that was drawn: all but its rows, which it knows by their alias. */
export function toChartText({ kind, url, contentHash, spec, data, title }: ChartArtifact): string {
  return JSON.stringify({ status: "ok", artifacts: [{ kind, url, contentHash, title, type: spec.type, rows: data.length }] });
}

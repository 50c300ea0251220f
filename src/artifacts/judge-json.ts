import { chartRowsSchema, chartSpecSchema } from "../protocol/chart-spec.ts";
import { checkChart } from "../protocol/check-chart.ts";
import { figureSchema } from "../protocol/figure.ts";
import { parseJson } from "../text/json.ts";

/** `figure`: the data behind a picture. `chart`: a spec and its rows. */
export type JsonKind = "figure" | "chart";

/** Why JSON that came out of a sandbox is not what it is said to be; null when it is. */
export function judgeJson(kind: JsonKind, bytes: Uint8Array): string | null {
  const value = parseJson(bytes);
  if (kind === "figure") return figureSchema.safeParse(value).success ? null : "the data behind an image is not as it must be";
  const { spec, data } = (value ?? {}) as { spec?: unknown; data?: unknown };
  const isChart = chartSpecSchema.safeParse(spec).success && chartRowsSchema.safeParse(data).success;
  if (!isChart) return "a chart has no spec and rows as the schema has them";
  const [fault] = checkChart(spec, data);
  return fault === undefined ? null : `a chart is wrong at ${fault.path}: ${fault.message}`;
}

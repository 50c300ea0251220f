import { z } from "zod";
import { chartSpecSchema } from "./chart-spec.ts";

/** The schema of a chart spec as JSON Schema, as the Python side reads it from python/sluice/chart_schema.json (scripts/write-chart-schema.ts). */
export function chartSchemaJson(): string {
  return `${JSON.stringify(z.toJSONSchema(chartSpecSchema), null, 2)}\n`;
}

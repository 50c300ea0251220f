/** Generates `python/sluice/chart_schema.json`, with which Python validates charts, from `src/protocol/chart-spec.ts`. */
import { writeFile } from "node:fs/promises";
import { z } from "zod";
import { chartSpecSchema } from "../src/protocol/chart-spec.ts";

const schema = JSON.stringify(z.toJSONSchema(chartSpecSchema), null, 2);
await writeFile(new URL("../python/sluice/chart_schema.json", import.meta.url), `${schema}\n`);

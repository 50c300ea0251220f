/** Writes the chart schema for the Python side: `chart-spec.ts` is where it is changed, `python/sluice/chart_schema.json` is made from it. */
import { writeFile } from "node:fs/promises";
import { chartSchemaJson } from "../src/protocol/chart-json-schema.ts";

await writeFile(new URL("../python/sluice/chart_schema.json", import.meta.url), chartSchemaJson());

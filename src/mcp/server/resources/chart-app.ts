import { readFile } from "node:fs/promises";
import { statSync } from "node:fs";
import path from "node:path";
import type { ReadResourceResult, Resource } from "@modelcontextprotocol/server";
import { SluiceError } from "../../../errors/sluice-error.ts";

/** The program that draws charts in hosts that can show MCP Apps. It is one HTML file and asks for nothing from the network. */
export const chartAppUri = "ui://sluice/chart.html";
export const chartAppMeta: Readonly<Record<string, unknown>> = { ui: { resourceUri: chartAppUri }, "ui/resourceUri": chartAppUri };

const mimeType = "text/html;profile=mcp-app";

/** Built from `web/`; the same place from the sources and from the package. */
export const builtChartApp: string = path.join(import.meta.dirname, "../../../../dist/web/chart-app.html");

export function hasChartApp(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true;
}

export const chartAppResource: Resource = {
  uri: chartAppUri,
  name: "chart-app",
  title: "Chart",
  description: "Draws the charts of a result. Self-contained; no network.",
  mimeType,
};

export async function readChartApp(file: string): Promise<ReadResourceResult> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new SluiceError({
      code: "CHART_APP_NOT_BUILT",
      message: "The program that draws charts is not built here.",
      hint: "Run `npm run setup`. Charts are also in the structured content of each result, and as a table in its text.",
      cause,
    });
  });
  return {
    contents: [
      { uri: chartAppUri, mimeType, text, _meta: { ui: { csp: { connectDomains: [], resourceDomains: [] }, prefersBorder: false } } },
    ],
  };
}

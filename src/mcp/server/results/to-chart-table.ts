import type { ChartArtifact } from "../../../protocol/artifact.ts";
import type { ChartCell } from "../../../protocol/chart-spec.ts";

const MAX_ROWS = 20;
const MAX_COLUMNS = 12;
const MAX_CELL_CHARACTERS = 80;

/** A chart for who reads text: what it shows, and its first rows. What is not shown is said, and where it is. */
export function toChartTable({ spec, data, title, url }: ChartArtifact): string {
  const columns = [...new Set(data.flatMap((row) => Object.keys(row)))];
  const shown = columns.slice(0, MAX_COLUMNS);
  const rows = data.slice(0, MAX_ROWS).map((row) => shown.map((column) => toCell(row[column] ?? null)));
  const hidden = [
    ...(data.length > MAX_ROWS ? [`${data.length - MAX_ROWS} more rows`] : []),
    ...(columns.length > MAX_COLUMNS ? [`${columns.length - MAX_COLUMNS} more columns`] : []),
  ];
  return [
    `${title ?? "Chart"} (${spec.type} chart, ${data.length} rows)`,
    "",
    toLine(shown.map(toCell)),
    toLine(shown.map(() => "---")),
    ...rows.map(toLine),
    ...(hidden.length === 0 ? [] : ["", `Not shown here: ${hidden.join(" and ")}. All of it is in ${url}.`]),
  ].join("\n");
}

function toLine(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function toCell(value: ChartCell): string {
  if (value === null) return "";
  const text = String(value).replaceAll(/\s+/g, " ").replaceAll("|", "\\|");
  return text.length <= MAX_CELL_CHARACTERS ? text : `${text.slice(0, MAX_CELL_CHARACTERS - 1)}…`;
}

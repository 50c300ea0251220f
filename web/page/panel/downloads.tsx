import { useState, type RefObject } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import { texts } from "../../texts.ts";
import { artifactPath } from "../answer/artifact-path.ts";
import { describeFailure } from "../api/api-error.ts";
import { send } from "../api/request.ts";
import { server } from "../api/server.ts";
import { toNumberTables, type NumberTable } from "./figure-rows.ts";
import { fileName, saveFile } from "./save-file.ts";
import { toCsv } from "./to-csv.ts";
import { toPng, toSvg } from "./to-svg.ts";

interface DownloadsProps {
  readonly artifact: ArtifactEnvelope;
  /** Element that contains the chart. */
  readonly drawing: RefObject<HTMLElement | null>;
  readonly resultAlias: string | null;
  readonly conversationId: string;
}

type Kind = keyof typeof texts.panel.files;

/** Downloads of a picture or chart and the numbers behind it. */
export function Downloads({ artifact, drawing, resultAlias, conversationId }: DownloadsProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const table = toOneTable(artifact);
  const kinds: Kind[] = [
    "png",
    ...(artifact.kind === "chart" ? (["svg"] as const) : []),
    ...(table ? (["csv", "parquet"] as const) : []),
    "json",
  ];
  const title = artifact.title ?? texts.panel.fileNames[artifact.kind];
  const make = async (kind: Kind): Promise<void> => {
    setProblem(null);
    try {
      saveFile(fileName(title, kind), await toFile(kind, artifact, table, drawing.current));
    } catch (error) {
      setProblem(describeFailure(error).message);
    }
  };
  return (
    <div className="downloads" role="group" aria-label={texts.panel.download}>
      <span className="soft">{texts.panel.download}</span>
      {kinds.map((kind) => (
        <button key={kind} type="button" aria-label={texts.panel.downloadAs(texts.panel.files[kind])} onClick={() => void make(kind)}>
          {texts.panel.files[kind]}
        </button>
      ))}
      {resultAlias !== null && (
        <span className="soft">
          {texts.panel.result} <code>{resultAlias}</code>:{" "}
          <a href={server.tableUrl(conversationId, resultAlias, "json")} download>
            {texts.panel.files.json}
          </a>
        </span>
      )}
      {problem !== null && (
        <p role="alert">
          {texts.panel.downloadFailed}: {problem}
        </p>
      )}
    </div>
  );
}

async function toFile(kind: Kind, artifact: ArtifactEnvelope, table: NumberTable | null, drawing: HTMLElement | null): Promise<Blob> {
  if (kind === "png" && artifact.kind === "image") return (await send(artifactPath(artifact))).blob();
  if (kind === "png" || kind === "svg") {
    const chart = drawing?.querySelector(".chart");
    if (!chart) throw new Error(texts.panel.nothingDrawn);
    const drawn = toSvg(chart, artifact.title ?? "");
    return kind === "svg" ? new Blob([drawn.svg], { type: "image/svg+xml" }) : toPng(drawn);
  }
  if (kind === "json") {
    const content =
      artifact.kind === "chart"
        ? { title: artifact.title, spec: artifact.spec, data: artifact.data }
        : { title: artifact.title, alt: artifact.alt, figure: artifact.figure };
    return new Blob([`${JSON.stringify(content, null, 1)}\n`], { type: "application/json" });
  }
  if (!table) throw new Error(texts.panel.noNumbers);
  if (kind === "csv") return new Blob([toCsv(table)], { type: "text/csv" });
  const rows = table.rows.map((row) => table.columns.map(({ key }) => row[key] ?? null));
  return await server.writeParquet({ columns: table.columns.map(({ label }) => label), rows });
}

/** Concatenates the tables of a figure, with a column for the series. */
function toOneTable(artifact: ArtifactEnvelope): NumberTable | null {
  const tables = toNumberTables(artifact);
  const [first] = tables;
  if (!first) return null;
  if (tables.length === 1) return { ...first, columns: withUniqueLabels(first.columns) };
  const columns = new Map<string, string>([["series", texts.panel.series]]);
  for (const table of tables) for (const { key } of table.columns) columns.set(key, key);
  return {
    title: artifact.title ?? "",
    columns: [...columns].map(([key, label]) => ({ key, label })),
    rows: tables.flatMap(({ title, rows }) => rows.map((row) => ({ series: title, ...row }))),
  };
}

function withUniqueLabels(columns: NumberTable["columns"]): NumberTable["columns"] {
  return columns.map(({ key, label }, index) =>
    columns.findIndex((other) => other.label === label) === index ? { key, label } : { key, label: `${label} (${key})` },
  );
}

import { useMemo, useState, type RefObject } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";
import { artifactPath } from "../answer/artifact-path.ts";
import { useArtifactData, type ArtifactData } from "../answer/use-artifact-data.ts";
import { describeFailure } from "../api/api-error.ts";
import { send } from "../api/request.ts";
import { server } from "../api/server.ts";
import { toNumberTables, type NumberTable } from "./figure-rows.ts";
import { fileName, saveFile } from "./save-file.ts";
import { toCsv } from "./to-csv.ts";
import { toPng, toSvg } from "./to-svg.ts";

interface DownloadsProps {
  readonly artifact: ArtifactReference;
  /** Element that contains the chart. */
  readonly drawing: RefObject<HTMLElement | null>;
  readonly resultAlias: string | null;
  readonly conversationId: string;
}

type Kind = keyof typeof texts.panel.files;

/** Downloads of a picture or chart and the numbers behind it. */
export function Downloads({ artifact, drawing, resultAlias, conversationId }: DownloadsProps) {
  const [fault, setFault] = useState<string | null>(null);
  const loaded = useArtifactData(artifact);
  const data = loaded.state === "ready" ? loaded.value : null;
  const problem = loaded.state === "failed" ? describeFailure(loaded.error).message : fault;
  const table = useMemo(() => (data === null ? null : toOneTable(data, artifact.title)), [data, artifact.title]);
  const kinds: Kind[] = [
    "png",
    ...(artifact.kind === "chart" ? (["svg"] as const) : []),
    ...(table ? (["csv", "parquet"] as const) : []),
    ...(data ? (["json"] as const) : []),
  ];
  const title = artifact.title ?? texts.panel.fileNames[artifact.kind];
  const make = async (kind: Kind): Promise<void> => {
    setFault(null);
    try {
      saveFile(fileName(title, kind), await toFile(kind, { artifact, data, table, drawing: drawing.current }));
    } catch (error) {
      setFault(describeFailure(error).message);
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

interface FileSources {
  readonly artifact: ArtifactReference;
  /** Null until they are loaded. */
  readonly data: ArtifactData | null;
  readonly table: NumberTable | null;
  readonly drawing: HTMLElement | null;
}

async function toFile(kind: Kind, { artifact, data, table, drawing }: FileSources): Promise<Blob> {
  if (kind === "png" && artifact.kind === "image") return (await send(artifactPath(artifact))).blob();
  if (kind === "png" || kind === "svg") {
    const chart = drawing?.querySelector(".chart");
    if (!chart) throw new Error(texts.panel.nothingDrawn);
    const drawn = toSvg(chart, artifact.title ?? "");
    return kind === "svg" ? new Blob([drawn.svg], { type: "image/svg+xml" }) : toPng(drawn);
  }
  if (kind === "json") {
    const content =
      data?.kind === "chart"
        ? { title: artifact.title, spec: data.spec, data: data.data }
        : { title: artifact.title, alt: artifact.alt, figure: data?.figure ?? undefined };
    return new Blob([`${JSON.stringify(content, null, 1)}\n`], { type: "application/json" });
  }
  if (!table) throw new Error(texts.panel.noNumbers);
  if (kind === "csv") return new Blob([toCsv(table)], { type: "text/csv" });
  const rows = table.rows.map((row) => table.columns.map(({ key }) => row[key] ?? null));
  return await server.writeParquet({ columns: table.columns.map(({ label }) => label), rows });
}

/** Concatenates the tables of a figure, with a column for the series. */
function toOneTable(data: ArtifactData, title = ""): NumberTable | null {
  const tables = toNumberTables(data, title);
  const [first] = tables;
  if (!first) return null;
  if (tables.length === 1) return { ...first, columns: withUniqueLabels(first.columns) };
  const columns = new Map<string, string>([["series", texts.panel.series]]);
  for (const table of tables) for (const { key } of table.columns) columns.set(key, key);
  return {
    title,
    columns: [...columns].map(([key, label]) => ({ key, label })),
    rows: tables.flatMap((one) => one.rows.map((row) => ({ series: one.title, ...row }))),
  };
}

function withUniqueLabels(columns: NumberTable["columns"]): NumberTable["columns"] {
  return columns.map(({ key, label }, index) =>
    columns.findIndex((other) => other.label === label) === index ? { key, label } : { key, label: `${label} (${key})` },
  );
}

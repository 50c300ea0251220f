import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem, Preview, PreviewDetail } from "../contract.ts";
import type { Digest } from "./digest.ts";
import { clipText } from "./clip-text.ts";

export const MIN_PREVIEW_BYTES = 256;

export interface PreviewSource {
  readonly item: EvidenceItem;
  readonly digest: Digest;
  /** Whether the bytes can stand inside JSON as they are. */
  readonly isStrictJson: boolean;
}

/** Names and JSON texts, in the order in which they are read. */
type Pieces = readonly (readonly [name: string, json: string])[];

export interface PreviewLimits {
  readonly maxBytes: number;
  /** The most that may be said; less is said when there is no room. */
  readonly most?: PreviewDetail;
}

/** The most that fits: the whole, else schema and rows, else the schema, else the counts. The alias and where the whole is are always there. */
export function buildPreview(source: PreviewSource, { maxBytes, most = "whole" }: PreviewLimits): Preview {
  if (maxBytes < MIN_PREVIEW_BYTES) throw tooSmall(maxBytes);
  for (const detail of details.slice(details.indexOf(most))) {
    const pieces = builders[detail]?.(source, maxBytes);
    if (pieces && sizeOf(pieces) <= maxBytes) return toPreview(source.item.alias, pieces, detail);
  }
  return toPreview(source.item.alias, bare(source), "alias");
}

const details: readonly PreviewDetail[] = ["whole", "rows", "schema", "counts", "alias"];

const builders: Readonly<Partial<Record<PreviewDetail, (source: PreviewSource, maxBytes: number) => Pieces | null>>> = {
  whole: buildWhole,
  rows: buildRows,
  schema: buildSchema,
  counts: (source) => [...head(source), ...note(source)],
};

function buildWhole(source: PreviewSource, maxBytes: number): Pieces | null {
  const { item, digest, isStrictJson } = source;
  if (item.bytes > maxBytes || (!isStrictJson && item.format !== "text")) return null;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(item.read());
  const value = ["value", item.format === "text" ? JSON.stringify(text) : text] as const;
  const around = (schema: Pieces): Pieces => [...head(source), ...schema, value, ["complete", "true"], ...note(source)];
  if (digest.schema.length === 0) return around([]);
  return firstFit(
    digest.schema.slice(0, -1).map((schema) => around(schemaPieces(digest, schema))),
    maxBytes,
  );
}

function buildRows(source: PreviewSource, maxBytes: number): Pieces | null {
  const { digest } = source;
  if (digest.ends !== null) return buildEnds(source, maxBytes);
  if (digest.first.length === 0 && digest.around === null) return null;
  const room = maxBytes - sizeOf([...head(source), ...note(source)]);
  const schema =
    firstFit(
      digest.schema.map((text) => schemaPieces(digest, text)),
      room * 0.55,
    ) ?? leanSchema(digest);
  const withRows = (around: Pieces, rows: Pieces): Pieces => [...head(source), ...schema, ...around, ...rows, ...note(source)];
  if (digest.first.length === 0)
    return firstFit(
      digest.around!.map((text) => withRows([["value", text]], [])),
      maxBytes,
    );
  const left = room - sizeOf(schema);
  const around =
    digest.around === null
      ? []
      : (firstFit(
          digest.around.map((text) => [["around", text] as const]),
          left * 0.4,
        ) ?? [["around", '"not shown"'] as const]);
  return firstFit(
    rowChoices(digest).map((rows) => withRows(around, rows)),
    maxBytes,
  );
}

function buildSchema(source: PreviewSource, maxBytes: number): Pieces | null {
  const { digest } = source;
  if (digest.schema.length === 0) return null;
  const rest = notShown(digest, 0);
  return firstFit(
    digest.schema.map((schema) => [...head(source), ...schemaPieces(digest, schema), ...rest, ...note(source)]),
    maxBytes,
  );
}

/** The beginning and the end of a text. */
function buildEnds(source: PreviewSource, maxBytes: number): Pieces | null {
  const { start, end } = source.digest.ends!;
  const total = source.digest.shape.characters!;
  const choices = [4000, 3000, 2400, 1800, 1200, 900, 600, 400, 200, 100, 40].map((characters): Pieces => {
    const from = clipEnd(start, Math.ceil(characters * 0.7));
    const to = clipStart(end, Math.min(characters - from.length, Math.max(0, total - from.length)));
    const omitted = total - from.length - to.length;
    return [
      ...head(source),
      ["start", JSON.stringify(from)],
      ["end", JSON.stringify(to)],
      ["charactersNotShown", String(omitted)],
      ...note(source),
    ];
  });
  return firstFit(choices, maxBytes);
}

function clipEnd(text: string, characters: number): string {
  const part = text.slice(0, characters);
  return /[\uD800-\uDBFF]$/.test(part) && part.length < text.length ? part.slice(0, -1) : part;
}

function clipStart(text: string, characters: number): string {
  const part = characters <= 0 ? "" : text.slice(-characters);
  return /^[\uDC00-\uDFFF]/.test(part) && part.length < text.length ? part.slice(1) : part;
}

/** Rows at each end, best first: many long ones, fewer, shorter. */
function rowChoices(digest: Digest): Pieces[] {
  const counts = [10, 5, 3, 2, 1];
  const levels = digest.first.map((_, level) => level);
  const generous = levels.flatMap((level) => counts.slice(0, 3).map((count) => ({ level, count })));
  const terse = levels.flatMap((level) => counts.slice(3).map((count) => ({ level, count })));
  return [...generous, ...terse].map(({ level, count }) => {
    const isAll = digest.last[level]!.length === 0;
    const first = digest.first[level]!.slice(0, isAll ? count * 2 : count);
    const last = isAll ? [] : digest.last[level]!.slice(-count);
    return [
      ["first", `[${first.join(",")}]`],
      ...(last.length > 0 ? [["last", `[${last.join(",")}]`] as const] : []),
      ...notShown(digest, first.length + last.length),
    ];
  });
}

function notShown({ shape }: Digest, shown: number): Pieces {
  return shape.rows === null || shape.rows === shown ? [] : [["rowsNotShown", String(shape.rows - shown)]];
}

function schemaPieces({ schemaFrom }: Digest, schema: string): Pieces {
  return [["schema", schema], ...(schemaFrom === null ? [] : [["schemaFrom", JSON.stringify(schemaFrom)] as const])];
}

function leanSchema(digest: Digest): Pieces {
  const terse = digest.schema.at(-1);
  return terse === undefined ? [] : schemaPieces(digest, terse);
}

function head(source: PreviewSource): Pieces {
  const { item, digest } = source;
  const { shape } = digest;
  const pieces: [string, unknown][] = [
    ["alias", item.alias],
    ["tool", clipText(item.tool, 80)],
    ...(item.isError ? [["isError", true] as [string, unknown]] : []),
    ["format", item.format],
    ...(item.mimeType === undefined ? [] : [["mimeType", clipText(item.mimeType, 80)] as [string, unknown]]),
    ["bytes", item.bytes],
    ["kind", shape.kind],
    ...(shape.rows === null ? [] : [["rows", shape.rows] as [string, unknown]]),
    ...(shape.path.length === 0 ? [] : [["rowsAt", clipText(toPython(item.alias, shape.path), 200)] as [string, unknown]]),
    ...(shape.columnCount === 0 ? [] : [[shape.columnsFromSample ? "columnsSeen" : "columns", shape.columnCount] as [string, unknown]]),
    ...(shape.lines === undefined ? [] : [["lines", shape.lines] as [string, unknown]]),
    ...(shape.characters === undefined ? [] : [["characters", shape.characters] as [string, unknown]]),
    ...(item.precisionLoss === undefined ? [] : [["precisionLoss", item.precisionLoss] as [string, unknown]]),
    ...toAttachments(item.attachments),
  ];
  return pieces.map(([name, value]) => [name, JSON.stringify(value)] as const);
}

const SHOWN_ATTACHMENTS = 8;

function toAttachments(aliases: readonly string[]): [string, unknown][] {
  if (aliases.length === 0) return [];
  const rest = aliases.length - SHOWN_ATTACHMENTS;
  return [["alsoKept", aliases.slice(0, SHOWN_ATTACHMENTS)], ...(rest > 0 ? [["alsoKeptNotShown", rest] as [string, unknown]] : [])];
}

function note({ item, digest }: PreviewSource): Pieces {
  const rounded = digest.isRounded && item.precisionLoss === undefined ? " Numbers with ~ are rounded here, not there." : "";
  return [["note", JSON.stringify(`The whole output is available in Python as ${item.alias}.${rounded}`)]];
}

/** What is left when nothing else fits. */
function bare({ item, digest }: PreviewSource): Pieces {
  const rows = digest.shape.rows === null ? [] : [["rows", String(digest.shape.rows)] as const];
  return [
    ["alias", JSON.stringify(item.alias)],
    ["bytes", String(item.bytes)],
    ...rows,
    ["note", JSON.stringify(`Whole in Python as ${item.alias}.`)],
  ];
}

function toPython(alias: string, path: readonly string[]): string {
  return `${alias}${path.map((key) => `[${JSON.stringify(key)}]`).join("")}`;
}

function firstFit(choices: readonly Pieces[], maxBytes: number): Pieces | null {
  return choices.find((pieces) => sizeOf(pieces) <= maxBytes) ?? null;
}

function toPreview(alias: string, pieces: Pieces, detail: PreviewDetail): Preview {
  const json = `{${pieces.map(([name, text]) => `"${name}":${text}`).join(",")}}`;
  return { alias, json, bytes: Buffer.byteLength(json), detail };
}

function sizeOf(pieces: Pieces): number {
  return pieces.reduce((sum, [name, text]) => sum + name.length + 4 + Buffer.byteLength(text), 1);
}

function tooSmall(maxBytes: number): UsageError {
  return new UsageError({
    code: "PREVIEW_BUDGET_TOO_SMALL",
    message: `A preview cannot fit ${maxBytes} bytes; ${MIN_PREVIEW_BYTES} is the least.`,
    hint: `Set a budget of at least ${MIN_PREVIEW_BYTES} bytes for each output.`,
    details: { allowed: maxBytes, least: MIN_PREVIEW_BYTES },
  });
}

import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem, Preview, PreviewDetail } from "../contract.ts";
import type { Digest, DigestLevel } from "./digest.ts";
import { clipText, endOf, startOf } from "../../text/clip-text.ts";

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
  readonly most?: Detail;
}

/** From most to least. */
export const previewDetails = ["whole", "rows", "schema", "counts", "alias"] as const satisfies PreviewDetail[];
export type Detail = (typeof previewDetails)[number];

/** The most that fits: the whole, else schema and rows, else the schema, else the counts. The alias and where the whole is are always there. */
export function buildPreview(source: PreviewSource, { maxBytes, most = "whole" }: PreviewLimits): Preview {
  if (maxBytes < MIN_PREVIEW_BYTES) throw tooSmall(maxBytes);
  for (const detail of previewDetails.slice(previewDetails.indexOf(most))) {
    const pieces = formsOf[detail](source, maxBytes).find((form) => sizeOf(form) <= maxBytes);
    if (pieces !== undefined) return toPreview(source.item.alias, pieces, detail);
  }
  return toPreview(source.item.alias, bare(source), "alias");
}

/** The smallest preview that says this much; null where there is nothing of the kind to say. */
export function buildSmallest(source: PreviewSource, detail: Detail): Preview | null {
  const pieces = formsOf[detail](source, 0).at(-1);
  return pieces === undefined ? null : toPreview(source.item.alias, pieces, detail);
}

/** For each detail its forms, from full to terse. */
const formsOf: Readonly<Record<Detail, (source: PreviewSource, maxBytes: number) => Pieces[]>> = {
  whole: wholeForms,
  rows: (source) => (source.digest.ends === null ? rowForms(source) : endForms(source, source.digest.ends)),
  schema: schemaForms,
  counts: (source) => [[...head(source), ...note(source)]],
  alias: (source) => [bare(source)],
};

function wholeForms(source: PreviewSource, maxBytes: number): Pieces[] {
  const { item, digest, isStrictJson } = source;
  if (item.bytes > maxBytes || (!isStrictJson && item.format !== "text")) return [];
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(item.read());
  const value = ["value", item.format === "text" ? JSON.stringify(text) : text] as const;
  const schemas = digest.levels.map((level) => schemaPieces(digest, level));
  return [...schemas, []].map((schema) => [...head(source), ...schema, value, ["complete", "true"], ...note(source)]);
}

function rowForms(source: PreviewSource): Pieces[] {
  const { digest } = source;
  const levels = digest.levels.filter(({ first, around }) => first.length > 0 || around !== null);
  return levels.map((level) => [...head(source), ...schemaPieces(digest, level), ...rowPieces(digest, level), ...note(source)]);
}

function rowPieces(digest: Digest, { first, last, around }: DigestLevel): Pieces {
  if (first.length === 0) return [["value", around!]];
  return [
    ...(around === null ? [] : [["around", around] as const]),
    ["first", `[${first.join(",")}]`],
    ...(last.length > 0 ? [["last", `[${last.join(",")}]`] as const] : []),
    ...notShown(digest, first.length + last.length),
  ];
}

function schemaForms(source: PreviewSource): Pieces[] {
  const { digest } = source;
  const levels = digest.levels.filter(({ schema }) => schema !== null);
  return levels.map((level) => [...head(source), ...schemaPieces(digest, level), ...notShown(digest, 0), ...note(source)]);
}

/** The beginning and the end of a text. */
function endForms(source: PreviewSource, { start, end }: { readonly start: string; readonly end: string }): Pieces[] {
  const total = source.digest.shape.characters!;
  return [4000, 2000, 1000, 500, 250, 120, 60].map((characters) => {
    const from = startOf(start, Math.ceil(characters * 0.7));
    const to = endOf(end, Math.min(characters - from.length, Math.max(0, total - from.length)));
    return [
      ...head(source),
      ["start", JSON.stringify(from)],
      ["end", JSON.stringify(to)],
      ["charactersNotShown", String(total - from.length - to.length)],
      ...note(source),
    ];
  });
}

function notShown({ shape }: Digest, shown: number): Pieces {
  return shape.rows === null || shape.rows === shown ? [] : [["rowsNotShown", String(shape.rows - shown)]];
}

function schemaPieces({ schemaFrom }: Digest, { schema }: DigestLevel): Pieces {
  if (schema === null) return [];
  return [["schema", schema], ...(schemaFrom === null ? [] : [["schemaFrom", JSON.stringify(schemaFrom)] as const])];
}

function head({ item, digest: { shape } }: PreviewSource): Pieces {
  const { alias, tool, isError, format, mimeType, bytes, precisionLoss, attachments } = item;
  const { kind, rows, path, columnCount, columnsFromSample, lines, characters } = shape;
  const shownAliases = attachments.slice(0, SHOWN_ATTACHMENTS);
  const facts = {
    alias,
    tool: clipText(tool, 80),
    isError,
    format,
    mimeType: mimeType === undefined ? undefined : clipText(mimeType, 80),
    bytes,
    kind,
    rows: rows ?? undefined,
    rowsAt: path.length === 0 ? undefined : clipText(toPython(alias, path), 200),
    [columnsFromSample ? "columnsSeen" : "columns"]: columnCount || undefined,
    lines,
    characters,
    precisionLoss,
    alsoKept: attachments.length === 0 ? undefined : shownAliases,
    alsoKeptNotShown: attachments.length - shownAliases.length || undefined,
  };
  return Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, JSON.stringify(value)] as const]));
}

const SHOWN_ATTACHMENTS = 8;

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

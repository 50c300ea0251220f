import { UsageError } from "../../errors/sluice-error.ts";
import type { EvidenceItem, Preview, PreviewDetail } from "../evidence-store.ts";
import { SHOWN_ROWS, type Digest } from "./digest.ts";
import { renderOutline, type Outline } from "./outline.ts";
import { clipText, endOf, startOf } from "../../text/clip-text.ts";
import { previewNote, shortPreviewNote } from "../../prompts/result-notes.ts";

export const MIN_PREVIEW_BYTES = 256;

export interface PreviewSource {
  readonly item: EvidenceItem;
  readonly digest: Digest;
  /** Whether the bytes can be inserted into JSON unchanged. */
  readonly isStrictJson: boolean;
}

/** The members of a preview: names and JSON texts, in reading order. */
type Pieces = readonly (readonly [name: string, json: string])[];

/** From most to least detail. */
export const previewDetails = ["whole", "rows", "schema", "counts", "alias"] as const satisfies PreviewDetail[];
export type Detail = (typeof previewDetails)[number];

/** The most detailed preview that fits: the whole value, else schema and rows, else the schema, else counts, else the alias. Throws below 256 bytes. */
export function buildPreview(source: PreviewSource, maxBytes: number): Preview {
  if (maxBytes < MIN_PREVIEW_BYTES) throw tooSmall(maxBytes);
  for (const detail of previewDetails) {
    const pieces = builders[detail](source, maxBytes);
    if (pieces !== null && sizeOf(pieces) <= maxBytes) return toPreview(source.item.alias, pieces, detail);
  }
  return toPreview(source.item.alias, buildAlias(source), "alias");
}

/** The smallest preview with this detail; null if the output has none, such as rows of a scalar. */
export function buildSmallest(source: PreviewSource, detail: Detail): Preview | null {
  const pieces = builders[detail](source, 0);
  return pieces === null ? null : toPreview(source.item.alias, pieces, detail);
}

/** Builds the members for each detail: as much as fits, but at least MIN_PIECE_BYTES of each part. */
const builders: Readonly<Record<Detail, (source: PreviewSource, maxBytes: number) => Pieces | null>> = {
  whole: buildWhole,
  rows: (source, maxBytes) => (source.digest.ends === null ? buildRows(source, maxBytes) : buildEnds(source, maxBytes)),
  schema: (source, maxBytes) => (source.digest.schema === null ? null : withSchema(source, rowsNotShown(source.digest, 0), maxBytes)),
  counts: (source) => frame(source, []),
  alias: buildAlias,
};

function buildWhole(source: PreviewSource, maxBytes: number): Pieces | null {
  const { item, isStrictJson } = source;
  if (item.bytes > maxBytes || (!isStrictJson && item.format !== "text")) return null;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(item.read());
  const whole: Pieces = [
    ["value", item.format === "text" ? JSON.stringify(text) : text],
    ["complete", "true"],
  ];
  const pieces = withSchema(source, whole, maxBytes);
  return sizeOf(pieces) <= maxBytes ? pieces : frame(source, whole);
}

/** Reserves half of the room for the schema. Shows n rows from each end, with n shrinking until they fit; if one row is too long, it is cut. */
function buildRows(source: PreviewSource, maxBytes: number): Pieces | null {
  const { schema, around, rows } = source.digest;
  if (rows.length === 0 && around === null) return null;
  const room = maxBytes - sizeOf(frame(source, [...schemaPieces(source.digest, ""), ...rowsNotShown(source.digest, 0)]));
  const left = room - (schema === null ? 0 : Buffer.byteLength(fit(schema, room / 2)));
  if (rows.length === 0) return withSchema(source, [["value", fit(around!, left)]], maxBytes);
  const beside: Pieces = around === null ? [] : [["around", fit(around, left / 3)]];
  const forRows = left - sizeOf(beside);
  const texts = rows.map((row) => renderOutline(row, Number.POSITIVE_INFINITY));
  const whole = [SHOWN_ROWS, 5, 2, 1].map((n) => rowPieces(source.digest, texts, n)).find((pieces) => sizeOf(pieces) <= forRows);
  const cut = (): string[] => [...new Set([rows[0]!, rows.at(-1)!])].map((row) => fit(row, forRows / 2));
  return withSchema(source, [...beside, ...(whole ?? rowPieces(source.digest, cut(), 1))], maxBytes);
}

function rowPieces(digest: Digest, texts: readonly string[], n: number): Pieces {
  const isAll = digest.shape.rows! <= n * 2;
  const first = isAll ? texts : texts.slice(0, n);
  const last = isAll ? [] : texts.slice(-n);
  return [
    ["first", `[${first.join(",")}]`],
    ...(last.length > 0 ? [["last", `[${last.join(",")}]`] as const] : []),
    ...rowsNotShown(digest, first.length + last.length),
  ];
}

function buildEnds(source: PreviewSource, maxBytes: number): Pieces {
  const { start, end } = source.digest.ends!;
  const total = source.digest.shape.characters!;
  const forms = [4000, 2000, 1000, 500, 250, 120, 60].map((characters) => {
    const from = startOf(start, Math.ceil(characters * 0.7));
    const to = endOf(end, Math.min(characters - from.length, Math.max(0, total - from.length)));
    return frame(source, [
      ["start", JSON.stringify(from)],
      ["end", JSON.stringify(to)],
      ["charactersNotShown", String(total - from.length - to.length)],
    ]);
  });
  return forms.find((form) => sizeOf(form) <= maxBytes) ?? forms.at(-1)!;
}

/** Adds as much of the schema as fits beside the other members. */
function withSchema(source: PreviewSource, rest: Pieces, maxBytes: number): Pieces {
  const { schema } = source.digest;
  if (schema === null) return frame(source, rest);
  const withText = (text: string): Pieces => frame(source, [...schemaPieces(source.digest, text), ...rest]);
  return withText(fit(schema, maxBytes - sizeOf(withText(""))));
}

function schemaPieces({ schemaFrom }: Digest, schema: string): Pieces {
  return [["schema", schema], ...(schemaFrom === null ? [] : [["schemaFrom", JSON.stringify(schemaFrom)] as const])];
}

/** Puts what is known about the output before the other members, and the note after them. */
function frame(source: PreviewSource, members: Pieces): Pieces {
  return [...head(source), ...members, ...note(source)];
}

/** A schema or row with fewer bytes is not useful. */
const MIN_PIECE_BYTES = 160;

function fit(outline: Outline, bytes: number): string {
  return renderOutline(outline, Math.max(MIN_PIECE_BYTES, bytes));
}

function rowsNotShown({ shape }: Digest, shown: number): Pieces {
  return shape.rows === null || shape.rows === shown ? [] : [["rowsNotShown", String(shape.rows - shown)]];
}

function head({ item, digest: { shape, readAs } }: PreviewSource): Pieces {
  const { alias, tool, isError, format, mimeType, bytes, precisionLoss, attachments } = item;
  const { kind, rows, path, columnCount, columnsFromSample, lines, characters } = shape;
  const notes = readAs.slice(0, SHOWN_NOTES).map((message) => clipText(message, 200));
  const shownAliases = attachments.slice(0, SHOWN_ATTACHMENTS);
  const facts = {
    alias,
    _contextAlias: alias,
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
    readAs: notes.length === 0 ? undefined : notes,
    readAsNotShown: readAs.length - notes.length || undefined,
    alsoKept: attachments.length === 0 ? undefined : shownAliases,
    alsoKeptNotShown: attachments.length - shownAliases.length || undefined,
  };
  return Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, JSON.stringify(value)] as const]));
}

const SHOWN_ATTACHMENTS = 8;
const SHOWN_NOTES = 4;

function note({ item, digest }: PreviewSource): Pieces {
  return [["note", JSON.stringify(previewNote(item.alias, digest.isRounded && item.precisionLoss === undefined))]];
}

/** Used if nothing else fits. */
function buildAlias({ item, digest }: PreviewSource): Pieces {
  const rows = digest.shape.rows === null ? [] : [["rows", String(digest.shape.rows)] as const];
  return [
    ["alias", JSON.stringify(item.alias)],
    ["_contextAlias", JSON.stringify(item.alias)],
    ["bytes", String(item.bytes)],
    ...rows,
    ["note", JSON.stringify(shortPreviewNote(item.alias))],
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
    message: `A preview needs at least ${MIN_PREVIEW_BYTES} bytes; the budget is ${maxBytes}.`,
    hint: `Set a budget of at least ${MIN_PREVIEW_BYTES} bytes for each output.`,
    details: { allowed: maxBytes, least: MIN_PREVIEW_BYTES },
  });
}

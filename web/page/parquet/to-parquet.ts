import { ThriftWriter, type ThriftField } from "./thrift-writer.ts";

export interface ParquetColumn {
  readonly name: string;
  readonly values: readonly (string | number | null)[];
}

interface Chunk {
  readonly column: ParquetColumn;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
}

const doubleType = 5;
const textType = 6;
const magic = new TextEncoder().encode("PAR1");

/** A table as a Parquet file: one row group, plain and uncompressed, every column may have gaps. Numbers are doubles, all else is text. */
export function toParquet(columns: readonly ParquetColumn[]): Blob {
  const parts: Uint8Array<ArrayBuffer>[] = [magic];
  const chunks: Chunk[] = [];
  let offset = magic.length;
  for (const column of columns) {
    const type = column.values.every((value) => value === null || typeof value === "number") ? doubleType : textType;
    const page = toPage(column, type);
    parts.push(page);
    chunks.push({ column, type, offset, size: page.length });
    offset += page.length;
  }
  const footer = toFooter(chunks);
  parts.push(footer, littleEndian(footer.length), magic);
  return new Blob(parts, { type: "application/vnd.apache.parquet" });
}

function toPage({ values }: ParquetColumn, type: number): Uint8Array<ArrayBuffer> {
  const body = join([toLevels(values), type === doubleType ? toDoubles(values) : toTexts(values)]);
  const header = new ThriftWriter().struct([
    i32(1, 0),
    i32(2, body.length),
    i32(3, body.length),
    { id: 5, type: "struct", value: [i32(1, values.length), i32(2, 0), i32(3, 3), i32(4, 3)] },
  ]);
  return join([header.bytes(), body]);
}

/** Which values are there: one bit each, after the length and the number of groups of eight. */
function toLevels(values: readonly unknown[]): Uint8Array<ArrayBuffer> {
  const groups = Math.ceil(values.length / 8);
  const bits = new Uint8Array(groups);
  for (const [index, value] of values.entries()) if (value !== null) bits[index >> 3] = (bits[index >> 3] ?? 0) | (1 << (index & 7));
  const head: number[] = [];
  let count = (groups << 1) | 1;
  for (; count >= 0x80; count >>>= 7) head.push((count & 0x7f) | 0x80);
  head.push(count);
  return join([littleEndian(head.length + bits.length), Uint8Array.from(head), bits]);
}

function toDoubles(values: readonly (string | number | null)[]): Uint8Array<ArrayBuffer> {
  const there = values.filter((value) => value !== null).map(Number);
  const view = new DataView(new ArrayBuffer(there.length * 8));
  for (const [index, value] of there.entries()) view.setFloat64(index * 8, value, true);
  return new Uint8Array(view.buffer);
}

function toTexts(values: readonly (string | number | null)[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  return join(
    values.flatMap((value) => {
      if (value === null) return [];
      const text = encoder.encode(String(value));
      return [littleEndian(text.length), text];
    }),
  );
}

function toFooter(chunks: readonly Chunk[]): Uint8Array<ArrayBuffer> {
  const rows = chunks[0]?.column.values.length ?? 0;
  const root = [text(4, "schema"), i32(5, chunks.length)];
  const leaves = chunks.map(({ column, type }) => [
    i32(1, type),
    i32(3, 1),
    text(4, column.name),
    ...(type === textType ? [i32(6, 0)] : []),
  ]);
  const group = [
    { id: 1, type: "list" as const, value: { of: "struct", items: chunks.map(toColumnChunk) } },
    i64(
      2,
      chunks.reduce((sum, { size }) => sum + size, 0),
    ),
    i64(3, rows),
  ];
  return new ThriftWriter()
    .struct([
      i32(1, 1),
      { id: 2, type: "list", value: { of: "struct", items: [root, ...leaves] } },
      i64(3, rows),
      { id: 4, type: "list", value: { of: "struct", items: [group] } },
      text(6, "sluice"),
    ])
    .bytes();
}

function toColumnChunk({ column, type, offset, size }: Chunk): ThriftField[] {
  const metadata: ThriftField[] = [
    i32(1, type),
    { id: 2, type: "list", value: { of: "i32", items: [0, 3] } },
    { id: 3, type: "list", value: { of: "text", items: [column.name] } },
    i32(4, 0),
    i64(5, column.values.length),
    i64(6, size),
    i64(7, size),
    i64(9, offset),
  ];
  return [i64(2, offset), { id: 3, type: "struct", value: metadata }];
}

const i32 = (id: number, value: number): ThriftField => ({ id, type: "i32", value });
const i64 = (id: number, value: number): ThriftField => ({ id, type: "i64", value });
const text = (id: number, value: string): ThriftField => ({ id, type: "text", value });

function littleEndian(value: number): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value, true);
  return new Uint8Array(view.buffer);
}

function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Large JSON texts in the shapes that tools send. The names are the names of bench rows. */
export interface LargeOutput {
  readonly name: string;
  create(bytes: number): string;
}

const words = "Volumes fell on the second day while the spread widened, and the desk closed its position. ".repeat(20);

export const largeOutputs: readonly LargeOutput[] = [
  { name: "preview of 50 MB", create: (bytes) => `[${join(bytes, toRow)}]` },
  { name: "preview of 50 MB of long strings", create: (bytes) => `[${join(bytes, (id) => JSON.stringify({ id, text: words }))}]` },
  {
    name: "preview of 50 MB of long strings beyond ASCII",
    create: (bytes) => `[${join(bytes, (id) => JSON.stringify({ id, text: words.replaceAll("e", "é") }))}]`.replace("é", "€"),
  },
  {
    name: "preview of 50 MB of long strings with emoji",
    create: (bytes) => `[${join(bytes, (id) => JSON.stringify({ id, text: words.replaceAll("second", "second 😀") }))}]`,
  },
  { name: "preview of 50 MB by column", create: toColumns },
  { name: "preview of 50 MB of nested records", create: (bytes) => `[${join(bytes, toBook)}]` },
  { name: "preview of 50 MB by key", create: (bytes) => `{${join(bytes, (id) => `"record ${id}":${toRow(id)}`)}}` },
];

function join(bytes: number, write: (id: number) => string): string {
  const parts: string[] = [];
  for (let id = 0, written = 2; written < bytes; id++) {
    const part = write(id);
    parts.push(part);
    written += part.length + 1;
  }
  return parts.join(",");
}

function toRow(id: number): string {
  return JSON.stringify({
    id,
    symbol: ["BTC", "ETH", "SOL", "XRP"][id % 4],
    at: new Date(1_700_000_000_000 + id * 60_000).toISOString(),
    price: toPrice(id),
    volume: id % 11 === 0 ? null : (id * 7919) % 100_003,
    side: id % 3 === 0 ? "sell" : "buy",
    settled: id % 5 !== 0,
  });
}

function toBook(id: number): string {
  const levels = [0, 1, 2].map((level) => [toPrice(id) + level, id % 97]);
  return JSON.stringify({ id, book: { bids: levels, asks: levels.slice(1) }, meta: { source: { page: id % 10 } } });
}

function toColumns(bytes: number): string {
  const column = (write: (id: number) => unknown): string => `[${join(bytes / 3, (id) => String(write(id)))}]`;
  return `{"at":${column((id) => 1_700_000_000_000 + id * 60_000)},"price":${column(toPrice)},"volume":${column((id) => (id * 7919) % 100_003)}}`;
}

function toPrice(id: number): number {
  return Math.round(4_000_000 + 1_000_000 * Math.sin(id / 500)) / 100;
}

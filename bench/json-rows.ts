import { open } from "node:fs/promises";

/** Writes rows as a tool would return them, as one JSON array of about `bytes`. */
export async function writeJsonRows({ file, bytes }: { file: string; bytes: number }): Promise<void> {
  await using handle = await open(file, "w");
  let written = (await handle.write("[")).bytesWritten;
  for (let id = 0; written < bytes;) {
    const rows: string[] = [];
    for (let count = 0; count < 10_000; count++, id++) rows.push(JSON.stringify(toRow(id)));
    written += (await handle.write(`${written > 1 ? "," : ""}${rows.join(",")}`)).bytesWritten;
  }
  await handle.write("]");
}

function toRow(id: number): Record<string, unknown> {
  return {
    id,
    symbol: ["BTC", "ETH", "SOL", "XRP"][id % 4],
    at: new Date(1_700_000_000_000 + id * 60_000).toISOString(),
    price: Math.round(4_000_000 + 1_000_000 * Math.sin(id / 500)) / 100,
    volume: (id * 7919) % 100_003,
    side: id % 3 === 0 ? "sell" : "buy",
    settled: id % 5 !== 0,
  };
}

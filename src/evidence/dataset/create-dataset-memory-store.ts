import type { DatasetIndex, DatasetStore } from "./contract.ts";
import { toDatasetId } from "./create-dataset-file-store.ts";
import { listTables, readEntry } from "./dataset-tables.ts";
import { writeDocument } from "./write-document.ts";

/** For tests and for callers that take the dataset out at once. */
export function createDatasetMemoryStore(): DatasetStore {
  const kept = new Map<string, { readonly bytes: Uint8Array; readonly index: DatasetIndex }>();
  const derived = new Map<string, Uint8Array>();
  const toUrl = (hash: string): string => `sluice://datasets/${hash}`;
  return {
    async put(dataset) {
      const pieces: Uint8Array[] = [];
      const { hash, index } = await writeDocument(dataset, async (bytes) => void pieces.push(Uint8Array.from(bytes)));
      kept.set(hash, { bytes: Buffer.concat(pieces), index });
      return { datasetId: toDatasetId(hash), hash, bytes: index.bytes, url: toUrl(hash) };
    },
    readDerived: async (hash, name) => derived.get(`${hash}.${name}`) ?? null,
    keepDerived: async (hash, name, bytes) => void derived.set(`${hash}.${name}`, bytes),
    async open(hash) {
      const found = kept.get(hash);
      if (found === undefined) return null;
      const { bytes, index } = found;
      return {
        hash,
        bytes: bytes.length,
        url: toUrl(hash),
        tables: listTables(index),
        stream: async function* () {
          yield bytes;
        },
        async readTable(name) {
          const entry = index.entries.find((one) => one.name === name);
          return entry === undefined ? null : readEntry(entry, bytes.subarray(entry.offset, entry.offset + entry.length));
        },
      };
    },
  };
}

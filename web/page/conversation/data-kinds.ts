/** Endings of the files that can become data of a conversation. */
export const dataKinds = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"] as const;

export function isDataFile(name: string): boolean {
  return dataKinds.some((ending) => name.toLowerCase().endsWith(ending));
}

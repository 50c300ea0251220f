/** Endings of the files that can become tables of a conversation. */
export const tableFileEndings: readonly string[] = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"];

/** What `--data` takes: text as well, which is read by lines. */
export const dataFileEndings: readonly string[] = [...tableFileEndings, ".txt"];

/** File extensions that can become tables of a conversation. */
export const tableFileEndings: readonly string[] = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx"];

/** File extensions that `--data` accepts. Text files are read line by line. */
export const dataFileEndings: readonly string[] = [...tableFileEndings, ".txt"];

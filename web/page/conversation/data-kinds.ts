import { tableFileEndings } from "../../../src/protocol/data-files.ts";

/** Endings of the files that can become data of a conversation. */
export const dataKinds: readonly string[] = tableFileEndings;

export function isDataFile(name: string): boolean {
  return dataKinds.some((ending) => name.toLowerCase().endsWith(ending));
}

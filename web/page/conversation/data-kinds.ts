import { tableFileEndings } from "../../../src/protocol/data-files.ts";

/** File extensions that can be uploaded as data. */
export const dataKinds: readonly string[] = tableFileEndings;

export function isDataFile(name: string): boolean {
  return dataKinds.some((ending) => name.toLowerCase().endsWith(ending));
}

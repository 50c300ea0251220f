import { readFileSync } from "node:fs";
import path from "node:path";

/** Of this package, as its package.json says: one directory above the sources, and above what is built of them. */
export const packageVersion: string = readVersion();

function readVersion(): string {
  const file = path.join(import.meta.dirname, "..", "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

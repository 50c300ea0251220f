import { readFileSync } from "node:fs";
import path from "node:path";

/** The version in package.json, which is one directory above both the sources and the build. */
export const packageVersion: string = readVersion();

function readVersion(): string {
  const file = path.join(import.meta.dirname, "..", "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

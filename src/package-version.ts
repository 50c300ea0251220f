import { readFileSync } from "node:fs";

const packageFile = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string };

/** The version in package.json, which is one directory above both the sources and the build. */
export const packageVersion: string = packageFile.version;

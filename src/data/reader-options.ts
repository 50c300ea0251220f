import { lstat } from "node:fs/promises";
import { UsageError } from "../errors/sluice-error.ts";
import { readerOptionsSchema, type ReaderOptions } from "../protocol/reader.ts";
import { formatOf, toPrintable } from "./data-formats.ts";

/** Formats that can be read in several ways. */
const delimitedFormats: ReadonlySet<string | null> = new Set(["csv", "tsv"]);

export interface GivenFile {
  readonly path: string;
  readonly reader?: ReaderOptions;
}

/** Splits `file.csv?delimiter=%3B` into the path and the options. An existing file of that literal name wins. Throws READER_OPTIONS_INVALID. */
export async function splitReaderOptions(given: string): Promise<GivenFile> {
  const at = given.lastIndexOf("?");
  if (at === -1 || (await exists(given))) return { path: given };
  const path = given.slice(0, at);
  if (!delimitedFormats.has(formatOf(path))) return { path: given }; // not found: reported with the name as given
  return { path, reader: parseReaderOptions(new URLSearchParams(given.slice(at + 1)), path) };
}

/** Parses options in URL form. `tab` is accepted for a tab. Throws READER_OPTIONS_INVALID. */
function parseReaderOptions(query: URLSearchParams, path: string): ReaderOptions {
  const values = [...query].map(([name, value]) => [name, name === "delimiter" && value === "tab" ? "\t" : value] as const);
  const parsed = readerOptionsSchema.safeParse(Object.fromEntries(values));
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map(({ path: [name = ""], message }) => `${String(name)} ${message}`.trim()).join("; ");
  throw new UsageError({ code: "READER_OPTIONS_INVALID", message: `The options of ${toPrintable(path)} are not valid: ${wrong}.` });
}

/** Throws READER_OPTIONS_INVALID if options are given for a format that has none. */
export function refuseReaderOptions(name: string, format: string, reader: ReaderOptions | undefined): void {
  if (reader === undefined || Object.keys(reader).length === 0 || delimitedFormats.has(format)) return;
  throw new UsageError({ code: "READER_OPTIONS_INVALID", message: `${name} is ${format}; only CSV and TSV have options for reading.` });
}

/** Returns a shell word for the path with `{}` in place of the options, for messages that show how to give them. */
export function toReaderExample(argument: string, path: string): string {
  return `${argument}'${`${path}?{}`.replaceAll("'", "'\\''")}'`;
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}

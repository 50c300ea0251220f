/** Writes the tables of the documents that are made from the code: docs/configuration.md from the schema of the configuration,
 * docs/errors.md from the table of errors. Tests hold them to it. */
import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { configurationSchema } from "../src/config/configuration-schema.ts";
import { errorKinds, errorTable, lookUpError, type ErrorCode } from "../src/errors/error-table.ts";

const documents = { "docs/configuration.md": configurationTable, "docs/errors.md": errorTables };

interface KeySchema {
  readonly properties?: Readonly<Record<string, KeySchema>>;
  readonly additionalProperties?: KeySchema | boolean;
  readonly default?: unknown;
  readonly description?: string;
}

/** The whole text of a document, with what stands between its two marks made anew. */
export async function writeDocument(name: keyof typeof documents): Promise<string> {
  const text = await readFile(new URL(`../${name}`, import.meta.url), "utf8");
  return text.replace(/(?<=<!-- made by scripts\/write-docs\.ts -->\n)[\s\S]*(?=<!-- end -->)/, () => `\n${documents[name]()}\n\n`);
}

function configurationTable(): string {
  const schema = z.toJSONSchema(configurationSchema, { io: "input", unrepresentable: "any" }) as KeySchema;
  return ["| key | default | |", "|---|---|---|", ...rowsOf(schema, "")].join("\n");
}

/** A row for every key that says what it is; what only holds other keys has none. */
function rowsOf(schema: KeySchema, path: string): string[] {
  const { properties, additionalProperties: named, description } = schema;
  if (description !== undefined) {
    const json = JSON.stringify(schema.default);
    const value = json === undefined ? "" : typeof schema.default === "number" ? json : `\`${json}\``;
    return [`| \`${path}\` | ${value} | ${description} |`];
  }
  if (properties === undefined && typeof named !== "object") throw new Error(`${path} has no description`);
  const keys = Object.entries(properties ?? { NAME: named as KeySchema });
  return keys.flatMap(([key, below]) => rowsOf(below, path === "" ? key : `${path}.${key}`));
}

function errorTables(): string {
  const codes = Object.keys(errorTable) as ErrorCode[];
  const ofKind = (kind: string | undefined): string[] => codes.filter((code) => lookUpError(code).kind === kind).map(errorRow);
  const head = ["| code | meaning | HTTP | exit | retry |", "|---|---|---|---|---|"];
  const kinds = Object.entries(errorKinds).map(([kind, meaning]) =>
    [`## \`${kind}\``, "", meaning, "", ...head, ...ofKind(kind)].join("\n"),
  );
  return [...kinds, ["## Never read by a model", "", ...head, ...ofKind(undefined)].join("\n")].join("\n\n");
}

function errorRow(code: ErrorCode): string {
  const { meaning, hint, status, exit, retryable } = lookUpError(code);
  const exitCell = exit === 1 ? "" : exit;
  return `| \`${code}\` | ${meaning}${hint === undefined ? "" : ` ${hint}`} | ${status} | ${exitCell} | ${retryable ? "yes" : ""} |`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  for (const name of Object.keys(documents) as (keyof typeof documents)[])
    await writeFile(new URL(`../${name}`, import.meta.url), await writeDocument(name));

import { readFile } from "node:fs/promises";
import path from "node:path";
import { describeSchemaIssues, toPathText, type SchemaProblem } from "../errors/describe-schema-issues.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { configurationSchema, type ConfigurationFile } from "./configuration-schema.ts";
import type { Environment, LoadedConfiguration } from "./contract.ts";
import { dataDirectory } from "./data-directory.ts";
import { expandReferences, type Expanded } from "./expand-references.ts";
import { fillDefaults, withScriptAt } from "./fill-defaults.ts";
import { findConfiguration } from "./find-configuration.ts";
import { findRepeatedKeys } from "./find-repeated-keys.ts";
import { isSecretPath } from "./is-secret-path.ts";
import { traceOrigins } from "./trace-origins.ts";

export interface LoadOptions {
  /** The file to read; when it is left out, `sluice.config.json` is looked for from the working directory upward. Null: none is read. */
  readonly file?: string | null | undefined;
  readonly workingDirectory: string;
  readonly environment: Environment;
}

/** Reads, expands, checks and fills in. Throws UsageError with everything that is wrong with the file at once. Nothing of it is ever run as code. */
export async function loadConfiguration({ file, workingDirectory, environment }: LoadOptions): Promise<LoadedConfiguration> {
  const found =
    file === undefined ? await findConfiguration(workingDirectory) : file === null ? null : path.resolve(workingDirectory, file);
  const text = found === null ? "{}" : await read(found);
  const document = parse(text, found ?? "");
  const expanded = expandReferences(document, environment);
  const checked = check(expanded, { file: found, repeated: findRepeatedKeys(text) });
  const base = found === null ? path.resolve(workingDirectory) : path.dirname(found);
  const data = dataDirectory(environment);
  const filled = fillDefaults(checked, { base, dataDirectory: data.directory });
  const model = environment["SLUICE_MODEL"] || null;
  const configuration = model === null ? filled : { ...filled, model: withScriptAt(model, workingDirectory) };
  const variables = {
    ...(model === null ? {} : { model: "SLUICE_MODEL" }),
    ...(checked.artifacts?.directory === undefined && data.variable !== null ? { "artifacts.directory": data.variable } : {}),
  };
  const origins = traceOrigins({ configuration, document, references: expanded.references, variables });
  return { configuration, path: found, origins };
}

interface Checked {
  readonly file: string | null;
  readonly repeated: readonly SchemaProblem[];
}

function check({ value, references, problems }: Expanded, { file, repeated }: Checked): ConfigurationFile {
  const { success, data, error } = configurationSchema.safeParse(value);
  const mayShow = (at: readonly PropertyKey[]): boolean => !isSecretPath(at) && !references.has(toPathText(at));
  const wrong = success ? [] : describeSchemaIssues({ schema: configurationSchema, value, issues: error.issues, mayShow });
  // A text whose variable is missing is wrong for that reason alone.
  const missing = new Set(problems.map((problem) => problem.path));
  const all = [...repeated, ...problems, ...wrong.filter((problem) => !missing.has(problem.path))];
  if (success && all.length === 0) return data;
  throw invalid(file, all);
}

function invalid(file: string | null, problems: readonly SchemaProblem[]): UsageError {
  const count = problems.length === 1 ? "One thing is" : `${problems.length} things are`;
  return new UsageError({
    code: "CONFIGURATION_INVALID",
    message: `${count} wrong in ${file}:\n${problems.map(({ path: at, problem }) => `  ${at || "the whole"}: ${problem}`).join("\n")}`,
    hint: "Every key is in docs/configuration.md. Nothing was started.",
    details: { file, problems },
  });
}

async function read(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).replace(/^\uFEFF/, "");
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new UsageError({
      code: "CONFIGURATION_NOT_READ",
      message: `The configuration cannot be read from ${file}: ${isMissing ? "there is no such file" : (error as Error).message}.`,
      cause: error,
    });
  }
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError({
      code: "CONFIGURATION_INVALID",
      message: `${file} is no JSON: ${withoutContent((error as Error).message)}.`,
      hint: "JSON has no comments, and no comma after the last item.",
    });
  }
}

/** V8 repeats a piece of the text, which may be a key. Only what and where is kept. */
function withoutContent(message: string): string {
  const where = (/\(line \d+ column \d+\)/.exec(message) ?? /at position \d+/.exec(message))?.[0];
  const what = /^(?:Unexpected end of JSON input|Bad [\w ]+|Expected [^"]*?(?=in JSON)|Unterminated [\w ]+)/
    .exec(message)?.[0]
    .replace(/ in JSON.*$/, "")
    .trim();
  return [what ?? "it has something unexpected", ...(where === undefined ? [] : [where])].join(" ");
}

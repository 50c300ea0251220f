import { readFile } from "node:fs/promises";
import path from "node:path";
import type { z } from "zod";
import { toPathText } from "../errors/argument-path.ts";
import { problemsOfZod } from "../errors/schema-problems.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { configurationSchema, type Configuration, type ServerConfiguration } from "./configuration-schema.ts";
import type { Environment, LoadedConfiguration } from "./loaded-configuration.ts";
import { dataDirectory } from "./data-directory.ts";
import { expandReferences, type ConfigurationProblem, type Expanded } from "./expand-references.ts";
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
  const model = environment["SLUICE_MODEL"] || null;
  const { $schema: _, mcpServers, ...rest } = checked;
  const configuration: Configuration = {
    mcpServers: Object.fromEntries(Object.entries(mcpServers).map(([name, server]) => [name, atBase(server, base)])),
    ...rest,
    model: model === null ? withScriptAt(checked.model, base) : withScriptAt(model, workingDirectory),
    artifacts: { directory: path.resolve(base, checked.artifacts.directory ?? path.join(data.directory, "artifacts")) },
  };
  const variables = {
    ...(model === null ? {} : { model: "SLUICE_MODEL" }),
    ...(checked.artifacts.directory === undefined && data.variable !== null ? { "artifacts.directory": data.variable } : {}),
  };
  const origins = traceOrigins({ configuration, document, references: expanded.references, variables });
  return { configuration, path: found, origins };
}

/** A program is started where the file is, so that its arguments mean the same from wherever sluice is started. */
function atBase(server: ServerConfiguration, base: string): ServerConfiguration {
  return "command" in server ? { ...server, cwd: path.resolve(base, server.cwd ?? ".") } : server;
}

/** `script:FILE.json` with its path made absolute; other names as they are. */
function withScriptAt<Model extends string | null>(model: Model, base: string): Model | string {
  return model?.startsWith("script:") ? `script:${path.resolve(base, model.slice("script:".length))}` : model;
}

interface Checked {
  readonly file: string | null;
  readonly repeated: readonly ConfigurationProblem[];
}

function check({ value, references, problems }: Expanded, { file, repeated }: Checked): z.infer<typeof configurationSchema> {
  const { success, data, error } = configurationSchema.safeParse(value);
  const mayShow = (at: readonly PropertyKey[]): boolean => !isSecretPath(at) && !references.has(toPathText(at));
  const wrong = success ? [] : problemsOfZod({ schema: configurationSchema, value, issues: error.issues, mayShow });
  // A text whose variable is missing is wrong for that reason alone.
  const missing = new Set(problems.map((problem) => problem.path));
  const all = [...repeated, ...problems, ...wrong.filter((problem) => !missing.has(problem.path))];
  if (success && all.length === 0) return data;
  throw invalid(file, all);
}

function invalid(file: string | null, problems: readonly ConfigurationProblem[]): UsageError {
  const count = problems.length === 1 ? "One thing is" : `${problems.length} things are`;
  return new UsageError({
    code: "CONFIGURATION_INVALID",
    message: `${count} wrong in ${file}:\n${problems.map(({ path: at, problem }) => `  ${at || "the whole"}: ${problem}`).join("\n")}`,
    hint: "Every key is in docs/configuration.md. Nothing was started.",
    details: { file, problems: problems.map(({ path: at, problem }) => ({ path: at, problem })) },
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

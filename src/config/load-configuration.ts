import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import type { z } from "zod";
import { toPathText } from "../errors/argument-path.ts";
import { describeZodIssues } from "../errors/schema-problems.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { forEachPart } from "../text/json.ts";
import { configurationSchema, type Configuration, type ServerConfiguration } from "./configuration-schema.ts";
import { dataDirectory, type Environment } from "./environment.ts";
import { expandReferences, type ConfigurationProblem, type Expanded } from "./expand-references.ts";
import { isSecretPath } from "./hide-secrets.ts";
import { traceOrigins, type Origin } from "./trace-origins.ts";

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The file that was read; null if no file was found. */
  readonly path: string | null;
  /** The origin of every value, by paths such as `limits.sandbox.cellTimeoutMs` or `mcpServers.market.args[0]`. */
  readonly origins: Readonly<Record<string, Origin>>;
}

export interface LoadOptions {
  /** The file to read. Default: search for `sluice.config.json` from the working directory upward. Null: use the defaults only. */
  readonly file?: string | null | undefined;
  readonly workingDirectory: string;
  readonly environment: Environment;
}

/** Reads the configuration file, expands references, validates it and fills in defaults. Throws a UsageError that lists every problem of the file. */
export async function loadConfiguration({ file, workingDirectory, environment }: LoadOptions): Promise<LoadedConfiguration> {
  const found =
    file === undefined ? await findConfiguration(workingDirectory) : file === null ? null : path.resolve(workingDirectory, file);
  const text = found === null ? "{}" : await readText(found);
  const document = parse(text, found ?? "");
  const expanded = expandReferences(document, environment);
  const validated = validate(expanded, { file: found, repeatedKeys: findRepeatedKeys(text) });
  const base = found === null ? path.resolve(workingDirectory) : path.dirname(found);
  const data = dataDirectory(environment);
  const model = environment["SLUICE_MODEL"] || null;
  const { $schema: _, mcpServers, ...rest } = validated;
  const configuration: Configuration = {
    mcpServers: Object.fromEntries(Object.entries(mcpServers).map(([name, server]) => [name, resolveServer(server, base)])),
    ...rest,
    model: model === null ? resolveScript(validated.model, base) : resolveScript(model, workingDirectory),
    artifacts: { directory: path.resolve(base, validated.artifacts.directory ?? path.join(data.directory, "artifacts")) },
  };
  const variables = {
    ...(model === null ? {} : { model: "SLUICE_MODEL" }),
    ...(validated.artifacts.directory === undefined && data.variable !== null ? { "artifacts.directory": data.variable } : {}),
  };
  const origins = traceOrigins({ configuration, document, references: expanded.references, variables });
  return { configuration, path: found, origins };
}

const configurationName = "sluice.config.json";

/**
 * Returns the nearest configuration file from a directory upward, or null. A configuration starts programs, so a file that was not named explicitly must
 * belong to this user or root and must not be world-writable. An untrusted file is an error; skipping it would hide an attack from the user.
 */
async function findConfiguration(workingDirectory: string): Promise<string | null> {
  for (let directory = path.resolve(workingDirectory); ; directory = path.dirname(directory)) {
    const file = path.join(directory, configurationName);
    const stats = await stat(file).catch(() => null);
    if (stats?.isFile()) {
      const reason = whyNotTrusted(stats);
      if (reason === null) return file;
      throw new UsageError({
        code: "CONFIGURATION_NOT_TRUSTED",
        message: `Refusing to read ${file}: ${reason}, and a configuration can start programs.`,
        hint: `If you trust this file, name it explicitly: --config ${file}`,
      });
    }
    if (directory === path.dirname(directory)) return null;
  }
}

function whyNotTrusted({ uid, mode }: { uid: number; mode: number }): string | null {
  const self = process.getuid?.();
  if (self === undefined) return null;
  if (uid !== self && uid !== 0) return `it belongs to user ${uid}`;
  return (mode & 0o002) === 0 ? null : "every user can write to it";
}

async function readText(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).replace(/^\uFEFF/, "");
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new UsageError({
      code: "CONFIGURATION_NOT_READ",
      message: `Cannot read the configuration file ${file}: ${isMissing ? "no such file" : (error as Error).message}.`,
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
      message: `${file} is not valid JSON: ${withoutContent((error as Error).message)}.`,
      hint: "JSON allows no comments and no trailing commas.",
    });
  }
}

/** Removes the excerpt of the file from V8's message, because it may contain an API key. Keeps the problem and the position. */
function withoutContent(message: string): string {
  const position = (/\(line \d+ column \d+\)/.exec(message) ?? /at position \d+/.exec(message))?.[0];
  const problem = /^(?:Unexpected end of JSON input|Bad [\w ]+|Expected [^"]*?(?=in JSON)|Unterminated [\w ]+)/
    .exec(message)?.[0]
    .split(" in JSON", 1)[0]!
    .trim();
  return [problem ?? "unexpected character", ...(position === undefined ? [] : [position])].join(" ");
}

/** Finds keys that occur twice in an object of valid JSON text. JSON.parse silently keeps only the last one. */
export function findRepeatedKeys(text: string): ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  const walk = (path: readonly PropertyKey[], start: number): number => {
    const keys = new Set<PropertyKey>();
    return forEachPart(text, start, (key, from) => {
      const keyPath = [...path, key];
      if (keys.has(key)) problems.push({ path: toPathText(keyPath), problem: "is defined twice." });
      keys.add(key);
      return walk(keyPath, from);
    });
  };
  walk([], 0);
  return problems;
}

function validate(
  { value, references, problems }: Expanded,
  { file, repeatedKeys }: { file: string | null; repeatedKeys: readonly ConfigurationProblem[] },
): z.infer<typeof configurationSchema> {
  const { success, data, error } = configurationSchema.safeParse(value);
  const mayShow = (at: readonly PropertyKey[]): boolean => !isSecretPath(at) && !references.has(toPathText(at));
  const schemaProblems = success ? [] : describeZodIssues({ schema: configurationSchema, value, issues: error.issues, mayShow });
  // Report a string with an unset variable once, not also as a schema violation.
  const unexpanded = new Set(problems.map((problem) => problem.path));
  const all = [...repeatedKeys, ...problems, ...schemaProblems.filter((problem) => !unexpanded.has(problem.path))];
  if (success && all.length === 0) return data;
  const count = all.length === 1 ? "1 problem" : `${all.length} problems`;
  throw new UsageError({
    code: "CONFIGURATION_INVALID",
    message: `${count} in ${file}:\n${all.map(({ path: at, problem }) => `  ${at || "the file"}: ${problem}`).join("\n")}`,
    hint: "docs/configuration.md lists every key. Nothing was started.",
    details: { file, problems: all.map(({ path: at, problem }) => ({ path: at, problem })) },
  });
}

/** Makes `cwd` absolute. Default: the directory of the file, so that relative arguments do not depend on where sluice is started. */
function resolveServer(server: ServerConfiguration, base: string): ServerConfiguration {
  return "command" in server ? { ...server, cwd: path.resolve(base, server.cwd ?? ".") } : server;
}

/** Makes the path in `script:FILE.json` absolute. Returns other model names unchanged. */
function resolveScript<Model extends string | null>(model: Model, base: string): Model | string {
  return model?.startsWith("script:") ? `script:${path.resolve(base, model.slice("script:".length))}` : model;
}

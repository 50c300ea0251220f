import { toPathText } from "../errors/argument-path.ts";
import type { Configuration } from "./configuration-schema.ts";
import type { Reference } from "./expand-references.ts";

/** Where one configuration value came from. */
export type Origin =
  | { readonly from: "default" }
  | { readonly from: "file" }
  /** `written` is the text in the file, if the file refers to the variables. */
  | { readonly from: "environment"; readonly variables: readonly string[]; readonly written?: string | undefined };

export interface TraceOptions {
  readonly configuration: Configuration;
  /** The parsed content of the file; `{}` without a file. */
  readonly document: unknown;
  readonly references: ReadonlyMap<string, Reference>;
  /** Variables that replaced a value directly, such as SLUICE_MODEL, by the path of the value. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Returns the origin of every leaf of the configuration, by path. An empty array or object counts as a leaf. */
export function traceOrigins({ configuration, document, references, variables }: TraceOptions): Record<string, Origin> {
  return Object.fromEntries(
    listLeaves(configuration).map(({ path }) => {
      const pathText = toPathText(path);
      const variable = Object.hasOwn(variables, pathText) ? variables[pathText] : undefined;
      const reference = references.get(pathText);
      if (variable !== undefined) return [pathText, { from: "environment", variables: [variable] }];
      if (reference !== undefined) return [pathText, { from: "environment", ...reference }];
      return [pathText, { from: hasPath(document, path) ? "file" : "default" }];
    }),
  );
}

interface Leaf {
  readonly path: readonly PropertyKey[];
  readonly value: unknown;
}

/** Lists every scalar, empty array and empty object in a value, with its path. Undefined values are skipped. */
export function listLeaves(value: unknown, path: readonly PropertyKey[] = []): Leaf[] {
  if (typeof value !== "object" || value === null) return value === undefined ? [] : [{ path, value }];
  const entries: [PropertyKey, unknown][] = Array.isArray(value) ? value.map((item, index) => [index, item]) : Object.entries(value);
  return entries.length === 0 ? [{ path, value }] : entries.flatMap(([key, item]) => listLeaves(item, [...path, key]));
}

function hasPath(document: unknown, path: readonly PropertyKey[]): boolean {
  let value: unknown = document;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return false;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return true;
}

import { toPathText } from "../errors/argument-path.ts";
import type { Configuration, Origin } from "./loaded-configuration.ts";
import type { Reference } from "./expand-references.ts";

export interface TraceOptions {
  readonly configuration: Configuration;
  /** The file's content, as far as there is one. */
  readonly document: unknown;
  readonly references: ReadonlyMap<string, Reference>;
  /** Values that a variable set without being referred to, by path. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Where each single value came from. An empty list or object is one value, too. */
export function traceOrigins({ configuration, document, references, variables }: TraceOptions): Record<string, Origin> {
  const leaves = listLeaves(configuration);
  return Object.fromEntries(
    leaves.map(({ path }) => {
      const text = toPathText(path);
      const variable = Object.hasOwn(variables, text) ? variables[text] : undefined;
      const reference = references.get(text);
      if (variable !== undefined) return [text, { from: "environment", variables: [variable] }];
      if (reference !== undefined) return [text, { from: "environment", ...reference }];
      return [text, { from: isThere(document, path) ? "file" : "default" }];
    }),
  );
}

export interface Leaf {
  readonly path: readonly PropertyKey[];
  readonly value: unknown;
}

export function listLeaves(value: unknown, path: readonly PropertyKey[] = []): Leaf[] {
  if (typeof value !== "object" || value === null) return value === undefined ? [] : [{ path, value }];
  const entries: [PropertyKey, unknown][] = Array.isArray(value) ? value.map((item, index) => [index, item]) : Object.entries(value);
  return entries.length === 0 ? [{ path, value }] : entries.flatMap(([key, item]) => listLeaves(item, [...path, key]));
}

function isThere(document: unknown, path: readonly PropertyKey[]): boolean {
  let at: unknown = document;
  for (const step of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return false;
    at = (at as Record<PropertyKey, unknown>)[step];
  }
  return true;
}

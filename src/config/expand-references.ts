import { toPathText } from "../errors/argument-path.ts";
import type { SchemaProblem } from "../errors/schema-problems.ts";
import type { Environment } from "./loaded-configuration.ts";

/** Where, and the rest of a sentence about it. */
export type ConfigurationProblem = Pick<SchemaProblem, "path" | "problem">;

export interface Reference {
  readonly variables: readonly string[];
  /** The text as it is in the file. */
  readonly written: string;
}

export interface Expanded {
  readonly value: unknown;
  /** By path: the texts that had references in them. */
  readonly references: ReadonlyMap<string, Reference>;
  readonly problems: readonly ConfigurationProblem[];
}

/** Puts variables in place of `${NAME}` in every text of a document; `$${` stands for `${`. Keys are left alone. */
export function expandReferences(document: unknown, environment: Environment): Expanded {
  const references = new Map<string, Reference>();
  const problems: ConfigurationProblem[] = [];

  function expand(value: unknown, path: readonly PropertyKey[]): unknown {
    if (typeof value === "string") return expandText(value, toPathText(path));
    if (Array.isArray(value)) return value.map((item: unknown, index) => expand(item, [...path, index]));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => expandEntry(key, item, [...path, key])));
  }

  function expandEntry(key: string, item: unknown, path: readonly PropertyKey[]): [string, unknown][] {
    if (key !== "__proto__") return [[key, expand(item, path)]];
    problems.push({ path: toPathText(path), problem: "is no name that can be used here." });
    return [];
  }

  function expandText(written: string, path: string): string {
    const variables: string[] = [];
    const text = written.replaceAll(/(\$\$\{)|\$\{([^}]*)(\}?)/g, (whole, escaped: string | undefined, name: string, end: string) => {
      if (escaped !== undefined) return "${";
      if (!/^[A-Za-z_]\w*$/.test(name) || end === "") {
        problems.push({
          path,
          problem: `${JSON.stringify(whole.slice(0, 40))} is no reference. Write \${NAME}, or $\${ for the characters themselves.`,
        });
        return whole;
      }
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (value === undefined) problems.push({ path, problem: `the variable ${name} is not set.` });
      else variables.push(name);
      return value ?? "";
    });
    if (variables.length > 0) references.set(path, { variables: [...new Set(variables)], written });
    return text;
  }

  return { value: expand(document, []), references, problems };
}

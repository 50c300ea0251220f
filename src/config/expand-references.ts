import { toPathText } from "../errors/argument-path.ts";
import type { SchemaProblem } from "../errors/schema-problems.ts";
import type { Environment } from "./environment.ts";

/** The path of a value, and the rest of a sentence that starts with the path. */
export type ConfigurationProblem = Pick<SchemaProblem, "path" | "problem">;

export interface Reference {
  readonly variables: readonly string[];
  /** The text in the file, before expansion. */
  readonly written: string;
}

export interface Expanded {
  readonly value: unknown;
  /** The strings that contained references, by path. */
  readonly references: ReadonlyMap<string, Reference>;
  readonly problems: readonly ConfigurationProblem[];
}

/** Replaces `${NAME}` with the variable's value in every string of a document. `$${` is the escape for `${`. Keys are not expanded. */
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
    problems.push({ path: toPathText(path), problem: "is not allowed as a key." });
    return [];
  }

  function expandText(written: string, path: string): string {
    const variables: string[] = [];
    const text = written.replaceAll(/(\$\$\{)|\$\{([^}]*)(\}?)/g, (match, escaped: string | undefined, name: string, end: string) => {
      if (escaped !== undefined) return "${";
      if (!/^[A-Za-z_]\w*$/.test(name) || end === "") {
        problems.push({
          path,
          problem: `${JSON.stringify(match.slice(0, 40))} is not a valid reference. Write \${NAME} for a variable, or $\${ for a literal \${.`,
        });
        return match;
      }
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (value === undefined) problems.push({ path, problem: `environment variable ${name} is not set.` });
      else variables.push(name);
      return value ?? "";
    });
    if (variables.length > 0) references.set(path, { variables: [...new Set(variables)], written });
    return text;
  }

  return { value: expand(document, []), references, problems };
}

import type { z } from "zod";
import type { EnvelopeCode } from "../../errors/envelope-table.ts";
import { receivedType } from "../../errors/received-type.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { below, quote } from "../../errors/argument-path.ts";
import { describeValue } from "../../errors/describe-value.ts";
import type { Problem } from "./problem.ts";

type Issue = z.core.$ZodIssue;

const fieldNames: Readonly<Record<string, readonly string[]>> = {
  "": ["code", "inputs", "postProcessingContract"],
  postProcessingContract: ["operation", "reason", "inputAliases", "expectedArtifacts"],
};

/** More of them would only repeat what the first ones say. */
const MAX_PROBLEMS = 30;

/** What breaks the schema, in the codes and words of an envelope. */
export function schemaProblems(schema: z.ZodType, input: unknown): Problem[] {
  const parsed = schema.safeParse(input);
  if (parsed.success) return [];
  const { issues } = parsed.error;
  const problems = issues.slice(0, MAX_PROBLEMS).flatMap((issue) => toProblems(issue, input));
  const rest = issues.length - MAX_PROBLEMS;
  const more = rest > 0 ? [`${rest} more places break the schema.`] : [];
  return problems.map((problem, index) =>
    index === problems.length - 1 ? { ...problem, hints: [...(problem.hints ?? []), ...more] } : problem,
  );
}

function toProblems(issue: Issue, input: unknown): Problem[] {
  const path = issue.path.reduce<string>((from, key) => below(from, typeof key === "number" ? key : String(key)), "");
  const value = issue.path.reduce<unknown>((from, key) => valueAt(from, key), input);
  const problem = (code: EnvelopeCode, sentence: string, hints: readonly string[] = []): Problem => ({
    code,
    path,
    issue: sentence,
    receivedType: receivedType(value),
    hints,
  });
  const name = path === "" ? "The call" : path;
  switch (issue.code) {
    case "invalid_type":
      if (value === undefined && path !== "") return [problem("SCHEMA_REQUIRED", `Required field missing: ${quote(path)}.`)];
      return [
        problem(
          "SCHEMA_TYPE_MISMATCH",
          `${name} must be ${typeName(issue.expected)}, not ${describeValue(value)}.`,
          asText(value, issue.expected, name),
        ),
      ];
    case "unrecognized_keys":
      return issue.keys.slice(0, MAX_PROBLEMS).map((key, index) => {
        const isLast = index === MAX_PROBLEMS - 1 && issue.keys.length > MAX_PROBLEMS;
        const near = nearestName(key, fieldNames[path] ?? []);
        const meant = near === null ? "" : ` Did you mean ${quote(near)}?`;
        return {
          code: "SCHEMA_ADDITIONAL_PROPERTIES",
          path: below(path, key),
          issue: `Unknown field ${quote(key)}.${meant}`,
          receivedType: receivedType(valueAt(value, key)),
          hints: [
            `${path === "" ? "A call" : path} has these fields: ${(fieldNames[path] ?? []).join(", ")}.`,
            ...(isLast ? [`There are ${issue.keys.length - MAX_PROBLEMS} more unknown fields.`] : []),
          ],
        };
      });
    case "invalid_value": {
      if (value === undefined) return [problem("SCHEMA_REQUIRED", `Required field missing: ${quote(path)}.`)];
      const allowed = issue.values.map(String);
      const near = typeof value === "string" ? nearestName(value, allowed) : null;
      const meant = near === null ? "" : ` Did you mean ${quote(near)}?`;
      return [
        problem("SCHEMA_ENUM_MISMATCH", `${path} must be one of ${allowed.map(quote).join(", ")}, not ${describeValue(value)}.${meant}`),
      ];
    }
    case "too_small":
      return [problem("SCHEMA_MIN_LENGTH", `${path} must not be empty.`)];
    case "too_big":
      if (issue.origin === "array") return [problem("SCHEMA_MAX_ITEMS", `${path} has more than ${issue.maximum} items.`)];
      return [problem("SCHEMA_MAX_LENGTH", `${path} is longer than ${issue.maximum} characters.`)];
    case "custom":
    case "invalid_element":
    case "invalid_format":
    case "invalid_key":
    case "invalid_union":
    case "not_multiple_of":
      return [problem("SCHEMA_VALIDATION_FAILED", `${name} is not as the schema says: ${issue.message}.`)];
  }
}

function valueAt(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as Record<PropertyKey, unknown>)[key]
    : undefined;
}

function typeName(expected: string): string {
  if (expected === "object" || expected === "record") return "an object";
  return expected === "array" ? "an array" : `a ${expected}`;
}

/** Models sometimes send the JSON text of an object instead of the object. */
function asText(value: unknown, expected: string, name: string): string[] {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return [];
  return expected === "string" ? [] : [`${name} was sent as JSON text. Send the value itself.`];
}

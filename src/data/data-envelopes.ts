import type { z } from "zod";
import { describeSchemaIssues } from "../errors/describe-schema-issues.ts";
import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { nearestName } from "../errors/nearest-name.ts";
import { receivedType } from "../errors/received-type.ts";
import { toFailureEnvelope } from "../interpreter/code-interpreter.ts";
import type { DataAnswer } from "./contract.ts";
import type { TableRefusal } from "./tables/ask-table.ts";

type Refused = Extract<DataAnswer, { ok: false }>;

export function refuse(envelope: Envelope): Refused {
  return { ok: false, envelope };
}

export interface MalformedCall {
  readonly tool: string;
  readonly schema: z.ZodType;
  readonly input: unknown;
  readonly issues: readonly z.core.$ZodIssue[];
  readonly example: unknown;
}

export function malformed({ tool, schema, input, issues, example }: MalformedCall): Refused {
  const problems = describeSchemaIssues({ schema, value: input, issues });
  const details = problems.map(({ path, problem }) => ({ path, issue: problem, received_type: receivedType(valueAt(input, path)) }));
  const first = problems[0];
  const summary = `Nothing was done: ${first?.path ? `${first.path} ${first.problem}` : (first?.problem ?? "the call is not as the schema says.")}`;
  return refuse(createEnvelope({ code: "SCHEMA_VALIDATION_FAILED", tool, summary, details, examples: [example] }));
}

/** By a path like `filter[0].value`. */
function valueAt(value: unknown, path: string): unknown {
  let at = value;
  for (const step of path.match(/[^.[\]]+/g) ?? [])
    at = typeof at === "object" && at !== null && Object.hasOwn(at, step) ? (at as Record<string, unknown>)[step] : undefined;
  return at;
}

export function unknownAlias(tool: string, alias: string, known: readonly string[]): Refused {
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  const more = known.length > 20 ? ` and ${known.length - 20} more` : "";
  const summary = `There is no data named ${JSON.stringify(alias.slice(0, 100))}.${meant} There are: ${known.slice(-20).join(", ") || "none yet"}${more}.`;
  const details = [{ path: "alias", issue: "is not known", received_type: "string" }];
  return refuse(createEnvelope({ code: "ALIAS_UNKNOWN", tool, summary, details, hints: ["list_data names everything that is there."] }));
}

export function refusedTable(tool: string, { code, why, hints }: TableRefusal): Refused {
  return refuse(createEnvelope({ code, tool, summary: why, hints }));
}

/** What went wrong around the table. An abort is no answer: it goes on to whoever aborted. */
export function failed(tool: string, error: unknown, signal?: AbortSignal): Refused {
  if (signal?.aborted === true) throw error;
  return refuse(toFailureEnvelope(error, tool));
}

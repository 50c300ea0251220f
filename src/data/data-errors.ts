import { nearestName } from "../errors/nearest-name.ts";
import type { RefusalFacts } from "../errors/parse-arguments.ts";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { toFailureToolError } from "../interpreter/code-interpreter.ts";
import type { DataAnswer } from "./conversation-data.ts";
import type { TableRefusal } from "./tables/query-table.ts";

type Refusal = Extract<DataAnswer, { ok: false }>;

export function refuse(toolError: ToolError): Refusal {
  return { ok: false, toolError };
}

/** The facts for refusing a call whose arguments violate the schema of the tool. */
export function invalidArguments(tool: string, example: unknown): RefusalFacts {
  return { tool, lead: "Nothing was done", code: "SCHEMA_VALIDATION_FAILED", examples: [example] };
}

export function refuseUnknownAlias(tool: string, alias: string, known: readonly string[]): Refusal {
  const near = nearestName(alias, known);
  const suggestion = near === null ? "" : ` Did you mean ${near}?`;
  const more = known.length > 20 ? ` and ${known.length - 20} more` : "";
  const summary = `There is no data named ${JSON.stringify(alias.slice(0, 100))}.${suggestion} Known aliases: ${known.slice(-20).join(", ") || "none yet"}${more}.`;
  const details = [{ path: "alias", issue: "is not known", received_type: "string" }];
  return refuse(createToolError({ code: "ALIAS_UNKNOWN", tool, summary, details, hints: ["list_data lists all available data."] }));
}

export function refuseTable(tool: string, { code, why, hints }: TableRefusal): Refusal {
  return refuse(createToolError({ code, tool, summary: why, hints }));
}

/** Translates a thrown error. Rethrows it if the caller aborted the call. */
export function refuseFailure(tool: string, error: unknown, signal?: AbortSignal): Refusal {
  if (signal?.aborted === true) throw error;
  return refuse(toFailureToolError(error, tool));
}

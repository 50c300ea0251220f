import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { nearestName } from "../errors/nearest-name.ts";
import type { RefusalFacts } from "../errors/parse-arguments.ts";
import { toFailureToolError } from "../interpreter/code-interpreter.ts";
import type { DataAnswer } from "./conversation-data.ts";
import type { TableRefusal } from "./tables/ask-table.ts";

type Refused = Extract<DataAnswer, { ok: false }>;

export function refuse(toolError: ToolError): Refused {
  return { ok: false, toolError };
}

/** What a call of `tool` that breaks its schema is refused with. */
export function refusal(tool: string, example: unknown): RefusalFacts {
  return { tool, lead: "Nothing was done", code: "SCHEMA_VALIDATION_FAILED", examples: [example] };
}

export function unknownAlias(tool: string, alias: string, known: readonly string[]): Refused {
  const near = nearestName(alias, known);
  const meant = near === null ? "" : ` Did you mean ${near}?`;
  const more = known.length > 20 ? ` and ${known.length - 20} more` : "";
  const summary = `There is no data named ${JSON.stringify(alias.slice(0, 100))}.${meant} There are: ${known.slice(-20).join(", ") || "none yet"}${more}.`;
  const details = [{ path: "alias", issue: "is not known", received_type: "string" }];
  return refuse(createToolError({ code: "ALIAS_UNKNOWN", tool, summary, details, hints: ["list_data names everything that is there."] }));
}

export function refusedTable(tool: string, { code, why, hints }: TableRefusal): Refused {
  return refuse(createToolError({ code, tool, summary: why, hints }));
}

/** What went wrong around the table. An abort is no answer: it goes on to whoever aborted. */
export function failed(tool: string, error: unknown, signal?: AbortSignal): Refused {
  if (signal?.aborted === true) throw error;
  return refuse(toFailureToolError(error, tool));
}

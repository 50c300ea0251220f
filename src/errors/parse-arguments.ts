import type { z } from "zod";
import type { ToolErrorCode } from "./error-table.ts";
import { describeZodIssues, type Problem } from "./schema-problems.ts";
import { createToolError, type ToolError, type ToolErrorFacts } from "./tool-error.ts";

/** The parts of a refusal that do not depend on its problems. */
export interface RefusalFacts extends Pick<ToolErrorFacts, "tool" | "examples"> {
  /** The start of the summary: `The tool was not called`. */
  readonly lead: string;
  /** Overrides the error code that the problems would give. */
  readonly code?: ToolErrorCode;
}

/** Validates a call's arguments against one of our own schemas. Returns the parsed arguments, or the tool error that refuses the call. */
export function parseArguments<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  facts: RefusalFacts,
): { readonly ok: true; readonly data: z.output<Schema> } | { readonly ok: false; readonly toolError: ToolError } {
  const { success, data, error } = schema.safeParse(input);
  if (success) return { ok: true, data };
  return {
    ok: false,
    toolError: refuseArguments({ ...facts, problems: describeZodIssues({ schema, value: input, issues: error.issues }) }),
  };
}

/** Creates the tool error for a call whose arguments are invalid. The summary has the first problem, the details have all of them. */
export function refuseArguments({ lead, problems, code, ...facts }: RefusalFacts & { readonly problems: readonly Problem[] }): ToolError {
  const codes = new Set(problems.map((problem) => problem.code));
  const rest = problems.length - 1;
  return createToolError({
    ...facts,
    code: code ?? (codes.size === 1 ? problems[0]!.code : "INPUT_VALIDATION_FAILED"),
    summary: `${lead}. ${problems[0]!.issue}${rest === 0 ? "" : ` And ${rest} more problem${rest === 1 ? "" : "s"}.`}`,
    details: problems.map(({ code: error_code, path, issue, receivedType: received_type, line, column }) => ({
      path,
      issue,
      received_type,
      error_code,
      line,
      column,
    })),
    hints: problems.flatMap(({ hints }) => hints ?? []),
  });
}

/** Creates the tool error for arguments that throw when they are read, because of getters or proxies. Such arguments are not JSON. */
export function refuseUnreadableArguments(facts: Pick<RefusalFacts, "tool" | "lead">): ToolError {
  const issue = "The arguments cannot be read; they must be JSON.";
  return refuseArguments({ ...facts, problems: [{ code: "INPUT_VALIDATION_FAILED", path: "", issue, receivedType: "object" }] });
}

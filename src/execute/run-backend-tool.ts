import { createToolError, type ToolError } from "../errors/tool-error.ts";
import type { ForeignToolError } from "../errors/foreign-tool-error.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { executeHints } from "../prompts/execute-hints.ts";
import { callBackendTool, type BackendCall } from "../tools/call-backend-tool.ts";
import type { ToolFailure } from "../tools/tool-failure.ts";
import type { IdentityContext } from "./identity/identity-context.ts";

export interface BackendToolCall extends Pick<
  BackendCall,
  "catalog" | "policy" | "name" | "tool" | "args" | "signal" | "timeoutMs" | "onProgress"
> {
  readonly identity?: IdentityContext | undefined;
  readonly evidence: EvidenceStore;
}

export type BackendToolResult =
  | {
      readonly ok: true;
      readonly item: EvidenceItem;
      /** The alias of the item, then those of its attachments. */
      readonly aliases: readonly string[];
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      /** `refused`: the backend was not called. */
      readonly status: "error" | "refused";
      readonly failure: ToolFailure;
      readonly warnings: readonly string[];
    };

/**
 * Calls a backend tool for the model, a script or an MCP client: applies the identity context and keeps the whole output under an alias. Rejects only
 * with `signal.reason`.
 */
export async function runBackendTool({ identity, evidence, ...call }: BackendToolCall): Promise<BackendToolResult> {
  const { catalog, name, args, signal } = call;
  const resolved = call.tool === undefined ? await catalog.resolve(name, signal) : { ok: true as const, tool: call.tool };
  if (!resolved.ok) return refusedWith(resolved.toolError);
  const { tool } = resolved;
  const refusal = identity?.refusalOf(tool.tool) ?? null;
  if (refusal !== null) return refusedWith(refusal);
  const reply = await callBackendTool({ ...call, tool, ...identity?.toCallExtras(tool.tool) });
  const { warnings } = reply;
  if (!reply.ok) return { ok: false, status: reply.attempts === 0 ? "refused" : "error", failure: reply.failure, warnings };
  try {
    const item = await evidence.keep({ tool: tool.fullName, arguments: args, ...reply.answer });
    return { ok: true, item, aliases: [item.alias, ...item.attachments], warnings };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { ok: false, status: "error", failure: { kind: "toolError", toolError: notKept(tool.fullName, error) }, warnings };
  }
}

export function refusedWith(toolError: ToolError | ForeignToolError): BackendToolResult {
  return { ok: false, status: "refused", failure: { kind: "toolError", toolError }, warnings: [] };
}

/** The failure as a tool error; one is created from the message if the tool sent none. */
export function toToolError(tool: string, failure: ToolFailure): ToolError | ForeignToolError {
  if (failure.kind === "toolError") return failure.toolError;
  return createToolError({ code: "TOOL_EXECUTION_ERROR", tool, summary: `${failure.type}: ${failure.message}` });
}

function notKept(tool: string, { message, hint }: SluiceError): ToolError {
  return createToolError({
    code: "STORAGE_UNAVAILABLE",
    tool,
    summary: `The tool succeeded, but its result could not be kept: ${message}`,
    hints: [...(hint === undefined ? [] : [hint]), executeHints.doNotRepeat],
    retryable: false,
  });
}

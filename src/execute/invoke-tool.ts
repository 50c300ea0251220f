import { callBackendTool } from "../tools/call-backend-tool.ts";
import type { ToolAnswer } from "../tools/contract.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import type { ToolFailure } from "../tools/to-failure-envelope.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { getEnvelopeContract } from "../errors/get-envelope-contract.ts";
import type { SessionContext } from "./session/contract.ts";
import { sessionTools } from "./session/session-tools.ts";

/** How `execute` reaches tools. Rejects with the signal's reason, and only then. */
export type InvokeTool = (call: {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}) => Promise<ToolInvocation>;

export type ToolInvocation =
  /** `tool`: the name under which the answer is kept. */
  | { readonly ok: true; readonly tool: string; readonly answer: ToolAnswer; readonly warnings?: readonly string[] | undefined }
  /** One of our own tools, about the session and not about data: nothing is kept of it. */
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly failure: ToolFailure; readonly warnings?: readonly string[] | undefined };

export interface InvokeToolOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly session?: SessionContext | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Tools of the session, of the envelope, and of the catalog: what a script may call, for one request. */
export function createInvokeTool({ catalog, policy, session, timeoutMs }: InvokeToolOptions): InvokeTool {
  return async ({ name, args, signal }) => {
    if (name === "get_envelope_contract") return { ok: true, value: getEnvelopeContract() };
    const own = session === undefined ? undefined : sessionTools.find((tool) => tool.name === name);
    if (own !== undefined && session !== undefined) {
      const answer = own.run(session, args);
      return answer.ok ? { ok: true, value: answer.value } : { ok: false, failure: { kind: "envelope", envelope: answer.envelope } };
    }
    const resolved = session === undefined ? null : await catalog.resolve(name, signal);
    const tool = resolved?.ok === true ? resolved.tool.tool : null;
    const refusal = tool === null ? null : (session?.refusalOf(tool) ?? null);
    if (refusal !== null) return { ok: false, failure: { kind: "envelope", envelope: refusal } };
    const extras = tool === null ? undefined : session?.toCallExtras(tool);
    const reply = await callBackendTool({ catalog, policy, name, args, signal, timeoutMs, ...extras });
    if (!reply.ok) return { ok: false, failure: reply.failure, warnings: reply.warnings };
    return { ok: true, tool: reply.tool.fullName, answer: reply.answer, warnings: reply.warnings };
  };
}

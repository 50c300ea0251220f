import { z } from "zod";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { getEnvelopeContract } from "../errors/error-table.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { findCredentials, toCredentialError } from "../tools/find-credentials.ts";
import { reservedToolNames } from "../tools/assign-names.ts";
import { defineTool, type Tool } from "../tools/tool.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { refusedWith, runBackendTool, type BackendToolResult } from "./run-backend-tool.ts";
import type { IdentityContext } from "./identity/identity-context.ts";
import { identityTools } from "./identity/identity-tools.ts";

/** How `execute` reaches tools. Rejects with the signal's reason, and only then. */
export type InvokeTool = (call: Invocation) => Promise<ToolInvocation>;

interface Invocation {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly evidence: EvidenceStore;
  /** Without it there are no tools for identity, region and profile. */
  readonly identity?: IdentityContext | undefined;
  /** Instead of the one that all calls share. */
  readonly policy?: ToolPolicy | undefined;
}

/** `json`: the answer of one of our own tools, about the session and not about data. Nothing is kept of it. */
export type ToolInvocation = BackendToolResult | { readonly ok: true; readonly json: string };

export interface InvokeToolOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly timeoutMs?: number | undefined;
}

/** Tools of the session, of the envelope, and of the catalog: what a script may call. */
export function createInvokeTool(options: InvokeToolOptions): InvokeTool {
  return async (call) => {
    if (reservedToolNames.has(call.name)) return await invokeOwn(call);
    return await runBackendTool({ ...options, ...call, policy: call.policy ?? options.policy });
  };
}

export const envelopeContractTool: Tool<unknown> = defineTool({
  name: "get_envelope_contract",
  title: "Get the contract of errors",
  description: "Every kind and code of the v1 error envelope, what each means and whether a retry helps.",
  input: z.strictObject({}),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  run: async () => ({ status: "ok", text: JSON.stringify(getEnvelopeContract()), error: null }),
});

/** Those of ours that a script may call are checked for credentials as backend tools are. */
async function invokeOwn({ name, args, identity }: Invocation): Promise<ToolInvocation> {
  const tool = [envelopeContractTool, ...(identity === undefined ? [] : identityTools)].find((own) => own.name === name);
  if (tool === undefined) return refusedWith(notInScripts(name));
  const credentials = findCredentials(args);
  if (credentials.length > 0) return refusedWith(toCredentialError(name, credentials));
  const { text, error } = await tool.run(args, { identity: identity! });
  return error === null ? { ok: true, json: text } : refusedWith(error);
}

function notInScripts(name: string): ToolError {
  const isOfSession = identityTools.some((tool) => tool.name === name);
  return createToolError({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `There is no tool "${name}" inside a script.`,
    hints: [
      isOfSession
        ? "No identities, regions or profiles are configured here: call tools without them."
        : `${name} is called beside execute, not in it.`,
    ],
  });
}

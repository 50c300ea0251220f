import { z } from "zod";
import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { getEnvelopeContract } from "../errors/error-table.ts";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { findCredentials, toCredentialError } from "../tools/find-credentials.ts";
import { executeHints } from "../prompts/execute-hints.ts";
import { codeModeDescriptions } from "../prompts/code-mode-tools.ts";
import { reservedToolNames } from "../tools/assign-names.ts";
import { defineTool, readOnlyAnnotations, type Tool } from "../tools/tool.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { refusedWith, runBackendTool, type BackendToolResult } from "./run-backend-tool.ts";
import type { IdentityContext } from "./identity/identity-context.ts";
import { createIdentityState } from "./identity/create-identity-state.ts";
import { identityTools } from "./identity/identity-tools.ts";

/** Calls a tool for a script. Rejects only with the signal's reason. */
export type InvokeTool = (call: Invocation) => Promise<ToolInvocation>;

interface Invocation {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly evidence: EvidenceStore;
  /** Without it, `get_session_state` is the only identity tool. */
  readonly identity?: IdentityContext | undefined;
  /** Replaces the policy that all calls share. */
  readonly policy?: ToolPolicy | undefined;
}

/** `json` is the answer of one of our own tools. It is not kept as evidence. */
export type ToolInvocation = BackendToolResult | { readonly ok: true; readonly json: string };

export interface InvokeToolOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly timeoutMs?: number | undefined;
}

/** Scripts may call backend tools, the identity tools and `get_envelope_contract`. */
export function createInvokeTool(options: InvokeToolOptions): InvokeTool {
  return async (call) => {
    if (reservedToolNames.has(call.name)) return await invokeOwnTool(call);
    return await runBackendTool({ ...options, ...call, policy: call.policy ?? options.policy });
  };
}

export const envelopeContractTool: Tool<unknown> = defineTool({
  name: "get_envelope_contract",
  title: "Get the contract of errors",
  description: codeModeDescriptions.get_envelope_contract,
  input: z.strictObject({}),
  annotations: readOnlyAnnotations,
  run: async () => ({ status: "ok", text: JSON.stringify(getEnvelopeContract()), error: null }),
});

/** Scripts without an identity context can still ask for its state, as every script is told to do first. */
const requestState = createIdentityState({ configuration: {}, sessionPresent: false });
const sessionStateTool = identityTools.find(({ name }) => name === "get_session_state")!;

/** Calls one of our own tools. Checks the arguments for credentials, as for backend tools. */
async function invokeOwnTool({ name, args, identity }: Invocation): Promise<ToolInvocation> {
  const tool = [envelopeContractTool, ...(identity === undefined ? [sessionStateTool] : identityTools)].find((own) => own.name === name);
  if (tool === undefined) return refusedWith(notInScripts(name));
  const credentials = findCredentials(args);
  if (credentials.length > 0) return refusedWith(toCredentialError(name, credentials));
  const { text, error } = await tool.run(args, { identity: identity ?? requestState.open(null) });
  return error === null ? { ok: true, json: text } : refusedWith(error);
}

function notInScripts(name: string): ToolError {
  const isIdentityTool = identityTools.some((tool) => tool.name === name);
  return createToolError({
    code: "TOOL_NOT_FOUND",
    tool: name,
    summary: `The tool "${name}" cannot be called inside a script.`,
    hints: [isIdentityTool ? executeHints.withoutIdentity : `Call ${name} directly, not inside execute.`],
  });
}

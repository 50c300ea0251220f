import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { getEnvelopeContract } from "../errors/error-table.ts";
import type { EvidenceStore } from "../evidence/contract.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { checkToolInput } from "../tools/check-tool-input.ts";
import { findCredentials, toCredentialEnvelope } from "../tools/find-credentials.ts";
import { reservedToolNames } from "../tools/assign-names.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { codeModeSchemas } from "./code-mode-schemas.ts";
import { refusedWith, runBackendTool, type BackendToolResult } from "./run-backend-tool.ts";
import type { SessionContext } from "./session/contract.ts";
import { sessionTools } from "./session/session-tools.ts";

/** How `execute` reaches tools. Rejects with the signal's reason, and only then. */
export type InvokeTool = (call: Invocation) => Promise<ToolInvocation>;

interface Invocation {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly evidence: EvidenceStore;
  /** Without it there are no tools for identity, region and profile. */
  readonly session?: SessionContext | undefined;
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

/** Those of ours that a script may call are checked as backend tools are: for credentials, and against their schema. */
async function invokeOwn({ name, args, session }: Invocation): Promise<ToolInvocation> {
  const ofSession = session === undefined ? undefined : sessionTools.find((tool) => tool.name === name);
  const tool = name === "get_envelope_contract" ? codeModeSchemas.find((schema) => schema.name === name) : ofSession;
  if (tool === undefined) return refusedWith(notInScripts(name));
  const credentials = findCredentials(args);
  if (credentials.length > 0) return refusedWith(toCredentialEnvelope(name, credentials));
  const checked = checkToolInput({ name, schema: tool.inputSchema, args });
  if (!checked.ok) return refusedWith(checked.envelope);
  if (ofSession === undefined) return { ok: true, json: JSON.stringify(getEnvelopeContract()) };
  const answer = ofSession.run(session!, checked.args);
  return answer.ok ? { ok: true, json: JSON.stringify(answer.value) } : refusedWith(answer.envelope);
}

function notInScripts(name: string): Envelope {
  const isOfSession = sessionTools.some((tool) => tool.name === name);
  return createEnvelope({
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

import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { getEnvelopeContract } from "../errors/error-table.ts";
import { callBackendTool } from "../tools/call-backend-tool.ts";
import type { ToolAnswer } from "../tools/contract.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import type { ToolFailure } from "../tools/tool-failure.ts";
import { checkToolInput } from "../tools/check-tool-input.ts";
import { findCredentials, toCredentialEnvelope } from "../tools/find-credentials.ts";
import { reservedToolNames } from "../tools/assign-names.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import { codeModeSchemas } from "./code-mode-schemas.ts";
import type { SessionContext } from "./session/contract.ts";
import { sessionTools } from "./session/session-tools.ts";

/** How `execute` reaches tools. Rejects with the signal's reason, and only then. */
export type InvokeTool = (call: {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  /** Instead of the one that all calls share. */
  readonly policy?: ToolPolicy | undefined;
}) => Promise<ToolInvocation>;

export type ToolInvocation =
  /** `tool`: the name under which the answer is kept. */
  | { readonly ok: true; readonly tool: string; readonly answer: ToolAnswer; readonly warnings?: readonly string[] | undefined }
  /** One of our own tools, about the session and not about data: nothing is kept of it. */
  | { readonly ok: true; readonly value: unknown }
  /** `attempts`: how often the backend was asked; 0 when the call was refused before. */
  | { readonly ok: false; readonly failure: ToolFailure; readonly attempts: number; readonly warnings?: readonly string[] | undefined };

export interface InvokeToolOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly session?: SessionContext | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Tools of the session, of the envelope, and of the catalog: what a script may call, for one request. */
export function createInvokeTool({ catalog, policy: shared, session, timeoutMs }: InvokeToolOptions): InvokeTool {
  return async ({ name, args, signal, policy = shared }) => {
    if (reservedToolNames.has(name)) return await invokeOwn({ name, args, session });
    const resolved = await catalog.resolve(name, signal);
    if (!resolved.ok) return refused(resolved.envelope);
    const refusal = session?.refusalOf(resolved.tool.tool) ?? null;
    if (refusal !== null) return refused(refusal);
    const extras = session?.toCallExtras(resolved.tool.tool);
    const reply = await callBackendTool({ catalog, policy, name, tool: resolved.tool, args, signal, timeoutMs, ...extras });
    if (!reply.ok) return { ok: false, failure: reply.failure, attempts: reply.attempts, warnings: reply.warnings };
    return { ok: true, tool: reply.tool.fullName, answer: reply.answer, warnings: reply.warnings };
  };
}

interface OwnCall extends Pick<InvokeToolOptions, "session"> {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Those of ours that a script may call are checked as backend tools are: for credentials, and against their schema. */
async function invokeOwn({ name, args, session }: OwnCall): Promise<ToolInvocation> {
  const ofSession = session === undefined ? undefined : sessionTools.find((tool) => tool.name === name);
  const tool = name === "get_envelope_contract" ? codeModeSchemas.find((schema) => schema.name === name) : ofSession;
  if (tool === undefined) return refused(notInScripts(name));
  const credentials = findCredentials(args);
  if (credentials.length > 0) return refused(toCredentialEnvelope(name, credentials));
  const checked = checkToolInput({ name, schema: tool.inputSchema, args });
  if (!checked.ok) return refused(checked.envelope);
  if (ofSession === undefined) return { ok: true, value: getEnvelopeContract() };
  const answer = ofSession.run(session!, checked.args);
  return answer.ok ? { ok: true, value: answer.value } : refused(answer.envelope);
}

function refused(envelope: Envelope): ToolInvocation {
  return { ok: false, failure: { kind: "envelope", envelope }, attempts: 0 };
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

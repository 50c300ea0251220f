import type { EvidenceItem } from "../../evidence/contract.ts";
import { createEnvelope } from "../../errors/envelope.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { callBackendTool, type BackendReply } from "../../tools/call-backend-tool.ts";
import type { CatalogTool } from "../../tools/create-tool-catalog.ts";
import type { Turn } from "../open-turn.ts";
import { approvingPolicy } from "./approving-policy.ts";
import { isEmpty } from "./is-empty.ts";
import { failed, failedBy, refused, runCall, type CallOutcome } from "./run-call.ts";

export interface BackendToolCall {
  readonly callId: string;
  readonly name: string;
  readonly server: string | undefined;
  readonly args: unknown;
  /** As it is known now; null when there is none of this name. */
  readonly known: CatalogTool | null;
}

/** A backend tool of the catalog, for the model: its output is kept whole, the model reads a preview and an alias. */
export async function callTool(turn: Turn, { callId, name, server, args, known }: BackendToolCall): Promise<string> {
  return await runCall(turn, { callId, tool: name, server, input: args }, async () => {
    const { catalog, session, toolTimeoutMs } = turn.request;
    const refusal = known === null ? null : (session?.refusalOf(known.tool) ?? null);
    if (refusal !== null) return refused(refusal);
    const reply = await callBackendTool({
      catalog,
      policy: approvingPolicy(turn, callId),
      name,
      args: args ?? {},
      signal: turn.clock.stepsSignal,
      timeoutMs: toolTimeoutMs,
      onProgress: ({ progress, total, message }) => turn.emit({ type: "tool-progress", callId, tool: name, progress, total, message }),
      ...(known === null ? {} : session?.toCallExtras(known.tool)),
    });
    return reply.ok ? await keep(turn, name, args, reply) : toFailed(reply);
  });
}

function toFailed(reply: Extract<BackendReply, { ok: false }>): CallOutcome {
  const { failure, attempts } = reply;
  if (failure.kind === "envelope") return attempts === 0 ? refused(failure.envelope) : failedBy(failure.envelope);
  const reason = `${failure.type}: ${failure.message}`;
  const tool = reply.tool?.name ?? "";
  const { text } = failedBy(createEnvelope({ code: "TOOL_EXECUTION_ERROR", tool, summary: reason })).observation;
  return failed({ text, kind: null, code: "TOOL_EXECUTION_ERROR", reason }, "error");
}

type Answered = Extract<BackendReply, { ok: true }>;

async function keep(turn: Turn, name: string, args: unknown, { tool, answer, warnings }: Answered): Promise<CallOutcome> {
  const { evidence } = turn.conversation;
  let item: EvidenceItem;
  try {
    item = await evidence.keep({ tool: tool.fullName, arguments: args, ...answer });
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return failedBy(
      createEnvelope({
        code: "STORAGE_UNAVAILABLE",
        tool: name,
        summary: `The tool answered, but its result could not be kept: ${error.message}`,
        hints: error.hint === undefined ? [] : [error.hint],
        retryable: false,
      }),
    );
  }
  const aliases = [item.alias, ...item.attachments];
  const previews = aliases.map((alias) => evidence.preview(alias, { maxBytes: turn.budgets.previewBytes }).json);
  const said = warnings.map((warning) => JSON.stringify({ warning }));
  return {
    observation: { text: [...previews, ...said].join("\n"), isError: false, previews: aliases, brief: "" },
    status: "ok",
    aliases,
    isEmpty: isEmpty(item),
  };
}

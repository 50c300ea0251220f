import { createEnvelope, type Envelope } from "../../errors/envelope.ts";
import type { ForeignEnvelope } from "../../errors/foreign-envelope.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { EvidenceItem, EvidenceStore, Preview } from "../../evidence/contract.ts";
import type { SessionContext } from "../../execute/session/contract.ts";
import { callBackendTool, type BackendCall, type BackendReply } from "../../tools/call-backend-tool.ts";
import type { CatalogTool } from "../../tools/create-tool-catalog.ts";

export interface BackendToolCall extends Pick<BackendCall, "catalog" | "policy" | "name" | "args" | "signal" | "timeoutMs" | "onProgress"> {
  /** As it is known now; null when there is none of this name. */
  readonly known: CatalogTool | null;
  readonly session: SessionContext | undefined;
  readonly evidence: EvidenceStore;
  /** Of each preview; the store's own budget unless given. */
  readonly previewBytes?: number | undefined;
}

export type BackendToolResult =
  | {
      readonly ok: true;
      readonly item: EvidenceItem;
      /** The item's, then those of its attachments. */
      readonly previews: readonly Preview[];
      readonly aliases: readonly string[];
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      /** `refused`: the backend was not asked. */
      readonly status: "error" | "refused";
      readonly envelope: Envelope | ForeignEnvelope;
      /** The tool failed without saying how: the envelope is made up from its words. */
      readonly isPlain: boolean;
    };

/** Calls a tool of the catalog for a reader of previews: its output is kept whole, under an alias. */
export async function runBackendTool(call: BackendToolCall): Promise<BackendToolResult> {
  const { known, session, evidence, previewBytes, ...backend } = call;
  const refusal = known === null ? null : (session?.refusalOf(known.tool) ?? null);
  if (refusal !== null) return failed("refused", refusal);
  const reply = await callBackendTool({ ...backend, ...(known === null ? {} : session?.toCallExtras(known.tool)) });
  if (!reply.ok) return toFailed(reply);
  let item: EvidenceItem;
  try {
    item = await evidence.keep({ tool: reply.tool.fullName, arguments: call.args, ...reply.answer });
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return failed("error", notKept(call.name, error));
  }
  const aliases = [item.alias, ...item.attachments];
  const options = previewBytes === undefined ? {} : { maxBytes: previewBytes };
  return { ok: true, item, aliases, previews: aliases.map((alias) => evidence.preview(alias, options)), warnings: reply.warnings };
}

function toFailed({ failure, attempts, tool }: Extract<BackendReply, { ok: false }>): BackendToolResult {
  if (failure.kind === "envelope") return failed(attempts === 0 ? "refused" : "error", failure.envelope);
  const summary = `${failure.type}: ${failure.message}`;
  return failed("error", createEnvelope({ code: "TOOL_EXECUTION_ERROR", tool: tool?.name ?? "", summary }), true);
}

function failed(status: "error" | "refused", envelope: Envelope | ForeignEnvelope, isPlain = false): BackendToolResult {
  return { ok: false, status, envelope, isPlain };
}

function notKept(tool: string, { message, hint }: SluiceError): Envelope {
  return createEnvelope({
    code: "STORAGE_UNAVAILABLE",
    tool,
    summary: `The tool answered, but its result could not be kept: ${message}`,
    hints: hint === undefined ? [] : [hint],
    retryable: false,
  });
}

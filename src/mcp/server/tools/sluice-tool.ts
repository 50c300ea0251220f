import type { ResourceLink, Tool } from "@modelcontextprotocol/server";
import type { EvidenceStore } from "../../../evidence/contract.ts";
import type { Progress } from "../contract.ts";
import type { ToolReply } from "../results/to-call-result.ts";
import type { EnteredSession } from "../sessions/session-access.ts";

/** A tool over a session. Its listing is the same for every session; what it does is done in the one that the call entered. */
export interface SluiceTool {
  readonly listing: Tool;
  /** Rejects with `signal.reason` only. */
  run(call: SluiceCall): Promise<ToolReply>;
}

export interface SluiceCall {
  readonly entered: EnteredSession;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** The address of one of the session's aliases, for who reads resources. */
  link(alias: string): ResourceLink;
}

/** Links to those outputs that a preview does not show whole. */
export function linksTo(
  call: Pick<SluiceCall, "link">,
  evidence: EvidenceStore,
  aliases: readonly string[],
  shownBytes: number,
): ResourceLink[] {
  return aliases.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > shownBytes).map((alias) => call.link(alias));
}

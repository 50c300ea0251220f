import type { ScriptCallEnd, ScriptWatch } from "../../execute/script-watch.ts";
import type { ToolFailure } from "../../tools/to-failure-envelope.ts";
import type { ToolList } from "../../tools/create-tool-catalog.ts";
import type { CallFailure } from "../ledger.ts";
import type { Turn } from "../open-turn.ts";
import { approvingPolicy } from "./approving-policy.ts";
import { findServer, findTool } from "./find-tool.ts";
import { isEmpty } from "./is-empty.ts";
import { openCall, repeated, toFailure, type CallEnd } from "./run-call.ts";

/** The calls of one script, as calls of the turn: counted, guarded against loops, asked about, and told to who listens. */
export function watchScript(turn: Turn, { callId: within, list }: { callId: string; list: ToolList }): ScriptWatch {
  let count = 0;
  return {
    policy: approvingPolicy(turn, within),
    begin({ name, args }) {
      count += 1;
      const known = findTool(list, name);
      const tool = known?.name ?? name;
      const server = findServer(turn, name);
      const call = openCall(turn, { callId: `${within}/${count}`, tool, server, input: args, within });
      return {
        refusal: turn.guard.admit({ tool, input: args, within }) ? null : repeated(tool),
        end: (end) => call.end(toCallEnd(turn, end)),
      };
    },
  };
}

function toCallEnd({ conversation }: Turn, end: ScriptCallEnd): CallEnd {
  if (end.status === "ok") {
    const item = conversation.evidence.get(end.aliases[0] ?? "");
    return { status: "ok", aliases: end.aliases, isEmpty: item !== null && isEmpty(item) };
  }
  if (end.status === "aborted") return { status: "aborted", failure: { kind: null, code: "ABORTED", reason: "the script was ended" } };
  return { status: end.status, failure: failureOf(end.failure) };
}

function failureOf(failure: ToolFailure): CallFailure {
  if (failure.kind === "envelope") return toFailure(failure.envelope);
  return { kind: null, code: "TOOL_EXECUTION_ERROR", reason: `${failure.type}: ${failure.message}` };
}

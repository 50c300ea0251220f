import { orAbort } from "../../waiting/or-abort.ts";
import type { ToolPolicy } from "../../tools/tool-policy.ts";
import type { ApprovalRequestEvent } from "../../protocol/turn-events.ts";
import type { Turn } from "../open-turn.ts";

/** The request's policy, where a person is asked through the turn. Whoever does not say yes has said no, and so has one who fails to answer. */
export function approvingPolicy({ request, emit }: Turn, callId: string): ToolPolicy {
  const { policy, approve } = request;
  if (approve === undefined) return policy;
  return {
    judge: (tool, name) => policy.judge(tool, name),
    async ask(tool, args, signal) {
      const event: ApprovalRequestEvent = {
        type: "approval-request",
        callId,
        tool: tool.name,
        server: tool.tool.server,
        arguments: { ...args },
      };
      emit(event);
      const asked = approve(event, signal ?? new AbortController().signal);
      const isApproved = await orAbort(asked, signal).catch(() => {
        signal?.throwIfAborted();
        return false;
      });
      return isApproved ? null : await policy.ask(tool, args, signal);
    },
  };
}

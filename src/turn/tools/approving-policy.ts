import { randomUUID } from "node:crypto";
import type { Approval, ToolPolicy } from "../../tools/tool-policy.ts";
import type { ApprovalEndEvent, ApprovalRequestEvent } from "../../protocol/turn-events.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import type { Turn } from "../open-turn.ts";

/** The request's policy, where a person is asked through the turn. Whoever does not say yes has said no, and so has one who fails to answer. */
export function approvingPolicy({ request: { policy, approve }, emit, clock }: Turn, callId: string): ToolPolicy {
  if (approve === undefined) return policy;
  return policy.approvedBy(async (tool, args, signal = clock.stepsSignal): Promise<Approval> => {
    const approvalId = randomUUID();
    const request: ApprovalRequestEvent = {
      type: "approval-request",
      approvalId,
      callId,
      tool: tool.name,
      server: tool.tool.server,
      arguments: { ...args },
    };
    const end = (answer: ApprovalEndEvent["answer"]): void => emit({ type: "approval-end", approvalId, callId, answer });
    emit(request);
    try {
      const said = await orAbort(approve(request, signal), signal);
      const approval = typeof said === "boolean" ? { approved: said } : said;
      end(approval.approved ? "approved" : "refused");
      return approval;
    } catch (error) {
      end(signal.aborted ? "abandoned" : "refused");
      throw error;
    }
  });
}

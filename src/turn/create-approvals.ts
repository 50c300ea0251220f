import { orAbort } from "../concurrency/or-abort.ts";
import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";

/** Approvals that a page or another client answers: the turn calls `approve`, the client calls `answer`. */
export interface Approvals {
  /** Pass it as `approve` of a turn's request. Rejects when `signal` aborts before the answer. */
  approve(request: ApprovalRequestEvent, signal: AbortSignal): Promise<boolean>;
  /** Returns false when no such request is pending: it is unknown, already answered, or its turn has ended. */
  answer(approvalId: string, isApproved: boolean): boolean;
  /** Oldest first. */
  pending(): ApprovalRequestEvent[];
}

export function createApprovals(): Approvals {
  const pending = new Map<string, { readonly request: ApprovalRequestEvent; readonly settle: (isApproved: boolean) => void }>();

  return {
    async approve(request, signal) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      pending.set(request.approvalId, { request, settle: resolve });
      try {
        return await orAbort(promise, signal);
      } finally {
        pending.delete(request.approvalId);
      }
    },
    answer(approvalId, isApproved) {
      const approval = pending.get(approvalId);
      pending.delete(approvalId);
      approval?.settle(isApproved);
      return approval !== undefined;
    },
    pending: () => [...pending.values()].map(({ request }) => request),
  };
}

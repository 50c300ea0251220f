import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";

/** Questions that wait for a person who answers from elsewhere: `approve` is what a turn asks, `answer` is what a page, or a client, says. */
export interface Approvals {
  /** The `approve` of a turn's request. */
  approve(request: ApprovalRequestEvent, signal: AbortSignal): Promise<boolean>;
  /** False when nobody waits for this answer: there was no such question, it was answered, or the turn is over. */
  answer(approvalId: string, isApproved: boolean): boolean;
  /** The oldest first. */
  pending(): ApprovalRequestEvent[];
}

export function createApprovals(): Approvals {
  const open = new Map<string, { readonly request: ApprovalRequestEvent; readonly settle: (isApproved: boolean) => void }>();

  return {
    async approve(request, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      const giveUp = (): void => reject(signal.reason as Error);
      open.set(request.approvalId, { request, settle: resolve });
      signal.addEventListener("abort", giveUp, { once: true });
      try {
        return await promise;
      } finally {
        signal.removeEventListener("abort", giveUp);
        open.delete(request.approvalId);
      }
    },
    answer(approvalId, isApproved) {
      const asked = open.get(approvalId);
      open.delete(approvalId);
      asked?.settle(isApproved);
      return asked !== undefined;
    },
    pending: () => [...open.values()].map(({ request }) => request),
  };
}

import type { Gate } from "../../../sandbox/gate.ts";
import type { SessionLifetimes, Schedule } from "../mcp-parts.ts";
import type { McpSession } from "./open-mcp-session.ts";

/** Sandboxes of sessions that run nothing. When somebody waits for a sandbox, the one that has run nothing for longest is given up. */
export interface SpareSandboxes extends Disposable {
  /** Its last cell is over. */
  add(session: McpSession): void;
  /** A cell begins, or the session ends. */
  remove(session: McpSession): void;
}

export interface SpareSandboxesOptions {
  readonly gate: Pick<Gate, "waiting" | "onWaiting">;
  readonly after: Schedule;
  readonly lifetimes: Pick<SessionLifetimes, "spareMs">;
}

const why =
  "Somebody waited for a sandbox, and this session's was the one that had run nothing for longest: it was freed. Variables and files of earlier cells are gone, aliases are there.";

export function createSpareSandboxes({ gate, after, lifetimes }: SpareSandboxesOptions): SpareSandboxes {
  /** Those that have run nothing for long enough, the longest first. */
  const spare = new Set<McpSession>();
  /** Those that have not yet, with what calls off the wait. */
  const resting = new Map<McpSession, () => void>();
  const stopGivingUp = gate.onWaiting(giveUp);
  let beingFreed = 0;

  function add(session: McpSession): void {
    const isSpare = (): void => {
      resting.delete(session);
      spare.add(session);
      if (gate.waiting > beingFreed) giveUp();
    };
    remove(session);
    resting.set(session, after(lifetimes.spareMs, isSpare));
  }

  function remove(session: McpSession): void {
    resting.get(session)?.();
    resting.delete(session);
    spare.delete(session);
  }

  function giveUp(): boolean {
    for (const session of spare) {
      spare.delete(session);
      if (!session.hasSandbox) continue; // it went for another reason
      beingFreed += 1;
      void session
        .freeSandbox(why)
        .catch(() => {})
        .finally(() => (beingFreed -= 1));
      return true;
    }
    return false;
  }

  return { add, remove, [Symbol.dispose]: stopGivingUp };
}

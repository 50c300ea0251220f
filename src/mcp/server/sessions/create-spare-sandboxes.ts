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
  "Somebody waited for a sandbox, and this session's, which had run nothing for longest, was given up: files of earlier cells are gone, aliases are there. The next cell says what became of the variables.";

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

  /** One after the other, as long as somebody waits: not every session that ran a cell still holds a sandbox. */
  function giveUp(): boolean {
    const [session] = spare;
    if (session === undefined) return false;
    spare.delete(session);
    beingFreed += 1;
    void session
      .giveUpSandbox(why)
      .catch(() => {})
      .finally(() => {
        beingFreed -= 1;
        if (gate.waiting > beingFreed) giveUp();
      });
    return true;
  }

  return { add, remove, [Symbol.dispose]: stopGivingUp };
}

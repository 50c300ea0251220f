import { UsageError } from "../errors/sluice-error.ts";
import type { InterpreterTurn, TurnSandbox } from "./turn.ts";

/** The turn's sandbox, opened by the first valid call: a turn that never computes pays nothing. A failure is forgotten, so that the next call tries again. */
export function getOrCreateTurnSandbox(turn: InterpreterTurn, signal?: AbortSignal): TurnSandbox {
  if (turn.disposed) throw new UsageError({ code: "TURN_OVER", message: `The turn ${turn.id} is over.` });
  if (turn.sandbox === null) {
    const session = turn.source.openSession(signal === undefined ? {} : { signal });
    const sandbox: TurnSandbox = { session, bound: new Map() };
    turn.sandbox = sandbox;
    session.catch(() => {
      if (turn.sandbox === sandbox) turn.sandbox = null;
    });
  }
  return turn.sandbox;
}

/** Belongs into `finally`. Idempotent; ends whatever still runs. */
export async function disposeTurnSandbox(turn: InterpreterTurn): Promise<void> {
  turn.disposed = true;
  const { sandbox } = turn;
  turn.sandbox = null;
  const session = await sandbox?.session.catch(() => null);
  await session?.close();
}

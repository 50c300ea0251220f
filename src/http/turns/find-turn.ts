import type { StoredTurn } from "../../history/contract.ts";
import { HttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../server-parts.ts";

/** A turn as the history has it, with its end also when that could not be written yet. */
export function findTurn({ history, turns }: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const live = turns.find(tenant, turnId);
  const stored = history.turns.get(tenant, turnId);
  if (stored === null) throw new HttpFailure({ status: 404, code: "TURN_NOT_FOUND", message: `There is no turn ${turnId}.` });
  if (live === null || live.result === null) return stored;
  const { result, events } = live;
  return { ...stored, status: "ended", result, stopReason: result.outcome.stopReason, endedAt: events.at(-1)!.at };
}

export function findEndedTurn(parts: Pick<ServerParts, "history" | "turns">, tenant: string, turnId: string): StoredTurn {
  const turn = findTurn(parts, tenant, turnId);
  if (turn.status === "ended") return turn;
  throw new HttpFailure({ status: 409, code: "TURN_RUNNING", message: "The turn still runs.", hint: "Wait for its end, or stop it." });
}

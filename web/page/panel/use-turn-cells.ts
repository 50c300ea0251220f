import { useEffect, useState } from "react";
import type { CellDocument } from "../../../src/protocol/http-cells.ts";
import type { TurnDocument } from "../../../src/protocol/http-turns.ts";
import { server } from "../api/server.ts";

/** The cells of a turn, and which of them drew an artifact. */
export function useTurnCells(
  turnId: string,
  contentHash: string,
): { turn: TurnDocument | null; cell: CellDocument | null; error: unknown } {
  const [turn, setTurn] = useState<TurnDocument | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const gone = new AbortController();
    setTurn(null);
    setError(null);
    server.turn(turnId, gone.signal).then(setTurn, (failure: unknown) => {
      if (!gone.signal.aborted) setError(failure);
    });
    return () => gone.abort();
  }, [turnId]);
  const cell = turn?.cells.findLast(({ artifacts }) => artifacts.includes(contentHash)) ?? null;
  return { turn, cell, error };
}

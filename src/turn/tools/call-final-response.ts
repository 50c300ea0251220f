import type { Turn } from "../open-turn.ts";
import { checkFinalResponse } from "./final-response.ts";
import { answered, refused, runCall } from "./run-call.ts";

export async function callFinalResponse(
  turn: Turn,
  { callId, input, isLast }: { callId: string; input: unknown; isLast: boolean },
): Promise<string> {
  return await runCall(turn, { callId, tool: "final_response", input }, async () => {
    const verdict = checkFinalResponse(turn, input, { isLast });
    if (!verdict.ok) return refused(verdict.envelope);
    turn.ledger.final = verdict.final;
    return answered('{"status":"ok"}');
  });
}

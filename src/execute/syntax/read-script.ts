import { setImmediate as nextTurn } from "node:timers/promises";
import { beginTokens, type PythonToken } from "./tokenize-python.ts";

/** About what 256 KB of Python that somebody wrote have; what follows is for the interpreter alone. */
const MAX_TOKENS = 100_000;
/** A few milliseconds of work; then others have their turn. */
const STEPS_A_TURN = 8_192;

/** The tokens of a script of any length, without holding up the event loop: the text is a model's, or somebody's who speaks through it. */
export async function readScript(code: string): Promise<readonly PythonToken[]> {
  const reading = beginTokens(code, { maxTokens: MAX_TOKENS });
  while (!reading.readOn(STEPS_A_TURN)) await nextTurn();
  return reading.tokens;
}

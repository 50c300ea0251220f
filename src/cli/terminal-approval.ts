import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { createLimiter } from "../concurrency/create-limiter.ts";
import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";
import type { Approval } from "../tools/tool-policy.ts";
import { clipText } from "../text/clip-text.ts";
import { toTerminal } from "./terminal.ts";

export interface ApprovalTerminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
}

export type ApproveInTerminal = (request: ApprovalRequestEvent, signal: AbortSignal) => Promise<Approval>;

const SHOWN_CHARACTERS = 2_000;

/** Asks the person at the terminal, one question at a time. Where there is none, nothing is approved, and the refusal says what to configure. */
export function createTerminalApproval({ input, output }: ApprovalTerminal): ApproveInTerminal {
  if (input.isTTY !== true || output.isTTY !== true) return async (request) => ({ approved: false, because: nobodyToAsk(request) });
  const questions = createLimiter({ places: 1 });
  return (request, signal) => questions.run(() => ask({ input, output }, request, signal), signal);
}

async function ask({ input, output }: ApprovalTerminal, request: ApprovalRequestEvent, signal: AbortSignal): Promise<Approval> {
  const terminal = createInterface({ input, output, terminal: false }); // so that Ctrl-C stays what it is
  try {
    const answer = await terminal.question(toQuestion(request), { signal });
    return /^\s*y(?:es)?\s*$/i.test(answer) ? { approved: true } : { approved: false, because: "the person said no." };
  } finally {
    terminal.close();
    input.pause(); // or it would keep the program from ending
  }
}

/** All of it, or it says that there is more: nobody should agree to what they cannot see. */
function toQuestion({ server, tool, arguments: args }: ApprovalRequestEvent): string {
  const shown = clipText(JSON.stringify(args, null, 2), SHOWN_CHARACTERS, (missing) => `… [${missing} characters more]`);
  const call = toTerminal(`  ? ${server} · ${tool} says that it changes something. It would be called with ${shown}`).replaceAll(
    "\n",
    "\n    ",
  );
  return `${call}\n    Call it? [y/N] `;
}

function nobodyToAsk({ server, tool }: ApprovalRequestEvent): string {
  const name = tool.includes("__") ? tool : `${server}__${tool}`;
  return `nobody can be asked, because there is no terminal. To let it be called without asking, add "${name}" to "tools": {"allow": []} in sluice.config.json.`;
}

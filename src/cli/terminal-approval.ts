import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";
import type { Approval } from "../tools/tool-policy.ts";
import { toTerminal } from "./to-terminal.ts";

export interface ApprovalTerminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
}

export type ApproveInTerminal = (request: ApprovalRequestEvent, signal: AbortSignal) => Promise<Approval>;

const SHOWN_CHARACTERS = 2_000;

/** Asks the person at the terminal, one question at a time. Where there is none, nothing is approved, and the refusal says what to configure. */
export function createTerminalApproval({ input, output }: ApprovalTerminal): ApproveInTerminal {
  if (input.isTTY !== true || output.isTTY !== true) return async (request) => ({ approved: false, because: nobodyToAsk(request) });
  let last: Promise<unknown> = Promise.resolve();
  return (request, signal) => {
    const answer = last.then(() => ask({ input, output }, request, signal));
    last = answer.catch(() => {});
    return answer;
  };
}

async function ask({ input, output }: ApprovalTerminal, request: ApprovalRequestEvent, signal: AbortSignal): Promise<Approval> {
  signal.throwIfAborted();
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
  const text = JSON.stringify(args, null, 2);
  const more = text.length - SHOWN_CHARACTERS;
  const shown = more > 0 ? `${text.slice(0, SHOWN_CHARACTERS)}… [${more} characters more]` : text;
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

import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { createLimiter } from "../concurrency/create-limiter.ts";
import type { ApprovalRequestEvent } from "../protocol/turn-events.ts";
import type { Approval } from "../tools/tool-policy.ts";
import { clipText } from "../text/clip-text.ts";
import { toTerminal } from "./terminal.ts";

interface ApprovalTerminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean };
}

const SHOWN_CHARACTERS = 2_000;

const noTerminal: Approval = { approved: false, because: "there is no terminal to ask for approval.", wasNotAsked: true };

/** Asks the user at the terminal, one question at a time. Without a terminal it approves nothing. */
export function createTerminalApproval(terminal: ApprovalTerminal) {
  const questions = createLimiter({ places: 1 });
  return async (request: ApprovalRequestEvent, signal: AbortSignal): Promise<Approval> => {
    if (terminal.input.isTTY !== true || terminal.output.isTTY !== true) return noTerminal;
    return await questions.run(() => ask(terminal, request, signal), signal);
  };
}

async function ask({ input, output }: ApprovalTerminal, request: ApprovalRequestEvent, signal: AbortSignal): Promise<Approval> {
  const terminal = createInterface({ input, output, terminal: false }); // keeps the normal behaviour of Ctrl-C
  try {
    const answer = await terminal.question(toQuestion(request), { signal });
    return /^\s*y(?:es)?\s*$/i.test(answer) ? { approved: true } : { approved: false, because: "the user said no." };
  } finally {
    terminal.close();
    input.pause(); // an open stdin would keep the process alive
  }
}

/** Shows the whole call, or says how much is missing: the user should not approve something unseen. */
function toQuestion({ server, tool, arguments: args }: ApprovalRequestEvent): string {
  const shown = clipText(JSON.stringify(args, null, 2), SHOWN_CHARACTERS, (missing) => `… [${missing} more characters]`);
  const call = toTerminal(`  ? ${server} · ${tool} may change something. Arguments: ${shown}`).replaceAll("\n", "\n    ");
  return `${call}\n    Call it? [y/N] `;
}

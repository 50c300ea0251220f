import type { ToolSet } from "ai";
import type { Gap } from "../../protocol/turn-result.ts";
import type { ToolList } from "../../tools/create-tool-catalog.ts";
import { orAbort } from "../../waiting/or-abort.ts";
import { describeError } from "../describe-error.ts";
import { toInstructions } from "../instructions.ts";
import type { Turn } from "../open-turn.ts";
import { approvingPolicy } from "../tools/approving-policy.ts";
import { createTurnTools } from "../tools/create-turn-tools.ts";

/** The tools as they are at each step: a server that comes back has its tools again in the next one. */
export interface StepTools {
  readonly instructions: string;
  tools(): Promise<ToolSet>;
}

export async function openStepTools(turn: Turn, { isLast }: { isLast: () => boolean }): Promise<StepTools> {
  const { catalog, session, codeMode: wanted, toolTimeoutMs } = turn.request;
  const { evidence } = turn.conversation;
  const codeMode = turn.runtime.createCodeMode({ catalog, policy: approvingPolicy(turn, ""), evidence, session, toolTimeoutMs, ...wanted });
  const librarian = await readLibrarianPrompt(turn);
  let last: { readonly list: ToolList; readonly tools: ToolSet } | null = null;

  return {
    instructions: toInstructions(turn, librarian),
    async tools() {
      const list = await readList(turn);
      if (last?.list === list) return last.tools;
      for (const { name, fullName, bareName, tool } of list.tools)
        for (const known of [name, fullName, bareName ?? name]) turn.owners.set(known, tool.server);
      last = { list, tools: createTurnTools(turn, { list, codeMode, hasSandbox: librarian !== null, isLast }) };
      return last.tools;
    },
  };
}

/** Null when there is no sandbox to be had: then there is no interpreter, and a gap says so. */
async function readLibrarianPrompt(turn: Turn): Promise<string | null> {
  try {
    return await orAbort(turn.runtime.librarianPrompt(), turn.clock.stepsSignal);
  } catch (error) {
    if (!turn.clock.stepsSignal.aborted)
      turn.gaps.push({ code: "sandbox_unavailable", severity: "minor", detail: `Python could not be used: ${describeError(error)}` });
    return null;
  }
}

/** A server that is down is a gap, and not a crash; one that came back is none any more. The same for a catalog that cannot be read. */
async function readList(turn: Turn): Promise<ToolList> {
  try {
    const list = await turn.request.catalog.list(turn.clock.stepsSignal);
    turn.away = list.gaps;
    turn.serverGaps = list.gaps.map(({ server, reason }): Gap => {
      return { code: "server_unavailable", severity: "minor", detail: `The server ${server} could not be used: ${reason}` };
    });
    return list;
  } catch (error) {
    if (!turn.clock.stepsSignal.aborted)
      turn.serverGaps = [
        { code: "tools_unavailable", severity: "major", detail: `The list of tools could not be read: ${describeError(error)}` },
      ];
    return noTools;
  }
}

const noTools: ToolList = { tools: [], gaps: [], warnings: [] };

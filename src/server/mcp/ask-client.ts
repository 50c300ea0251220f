import { inputRequired, type ElicitRequestFormParams, type InputRequest } from "@modelcontextprotocol/server";
import { isRecord } from "../../text/json.ts";
import { clipText } from "../../text/clip-text.ts";
import type { CatalogTool } from "../../tools/assign-names.ts";
import { describeClaim, type Approval } from "../../tools/tool-policy.ts";

/** One call of a tool that a person has to approve, as an elicitation: a form with one question. */
export type ApprovalQuestion = ElicitRequestFormParams;

/** More than this is cut, and the question says so: a person should not approve something unseen. */
const SHOWN_CHARACTERS = 2_000;

export function toApprovalQuestion(tool: CatalogTool, args: Readonly<Record<string, unknown>>): ApprovalQuestion {
  const shown = clipText(JSON.stringify(args, null, 2), SHOWN_CHARACTERS, (missing) => `… [${missing} more characters]`);
  return {
    mode: "form",
    message: `The tool ${tool.tool.name} of the server ${tool.tool.server} ${describeClaim(tool)}. Call it with these arguments?\n${shown}`,
    requestedSchema: {
      type: "object",
      properties: { approve: { type: "boolean", title: "Call the tool", description: "Yes calls it once with these arguments." } },
      required: ["approve"],
    },
  };
}

export function toInputRequest(question: ApprovalQuestion): InputRequest {
  return inputRequired.elicit(question);
}

/** Only an accepted form with `approve: true` approves. The answer comes from the client, so nothing about it is trusted. */
export function readApproval(answer: unknown): Approval {
  if (!isRecord(answer) || answer["action"] !== "accept" || !isRecord(answer["content"])) return refusedByUser;
  return answer["content"]["approve"] === true ? { approved: true } : refusedByUser;
}

const refusedByUser: Approval = { approved: false, because: "the user said no." };

/** Whether a client shows forms. Without any mode, `elicitation` means forms. */
export function offersForms(capabilities: unknown): boolean {
  const elicitation = isRecord(capabilities) ? capabilities["elicitation"] : undefined;
  return isRecord(elicitation) && (isRecord(elicitation["form"]) || elicitation["url"] === undefined);
}

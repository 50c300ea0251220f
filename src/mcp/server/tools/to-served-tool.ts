import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import type { CallContext, ServedTool } from "../contract.ts";
import { linkTo } from "../resources/data-uri.ts";
import { toCallResult, toErrorReply, type ToolReply } from "../results/to-call-result.ts";
import type { EnteredSession, SessionAccess } from "../sessions/session-access.ts";
import type { SluiceTool } from "./sluice-tool.ts";

/** A tool as one client sees it. Where there is no connection to tell a session by, its schema has room for the handle. */
export function toServedTool(tool: SluiceTool, access: SessionAccess): ServedTool {
  const argument = handleArgument(tool.listing);
  return {
    listing: access.isByHandle ? withHandle(tool.listing, argument) : tool.listing,
    async call(given, context) {
      const { [argument]: handle, ...rest } = given;
      const entry = access.enter({ tool: tool.listing.name, handle: access.isByHandle ? handle : undefined });
      if (!entry.ok) return toCallResult(toErrorReply(entry.envelope));
      try {
        return await callInSession(tool, entry.entered, { args: access.isByHandle ? rest : given, context, access });
      } finally {
        await entry.entered.leave({ wasAborted: context.signal.aborted });
      }
    },
  };
}

interface InSession {
  readonly args: Readonly<Record<string, unknown>>;
  readonly context: CallContext;
  readonly access: SessionAccess;
}

async function callInSession(tool: SluiceTool, entered: EnteredSession, { args, context, access }: InSession): Promise<CallToolResult> {
  const { session } = entered;
  await session.data.refresh();
  const link = (alias: string): ReturnType<typeof linkTo> => linkTo(session.evidence.get(alias)!, access.isByHandle ? session.id : null);
  const reply = await tool.run({ entered, args, link, ...context });
  return toCallResult(withFields(reply, { ...entered.fields, ...notesOf(entered) }));
}

function notesOf({ session }: EnteredSession): Record<string, unknown> {
  const notes = session.takeNotes();
  return notes.length === 0 ? {} : { sandbox_note: notes.join(" ") };
}

/** Put in front of the answer's own text, so that its numbers stay as they are written. */
function withFields(reply: ToolReply, fields: Readonly<Record<string, unknown>>): ToolReply {
  if (Object.keys(fields).length === 0) return reply;
  const rest = reply.json.slice(1).trimStart();
  return { ...reply, json: `${JSON.stringify(fields).slice(0, -1)}${rest === "}" ? "" : ","}${rest}` };
}

/** A tool of another server may have a `session` of its own. */
function handleArgument({ inputSchema: { properties = {} } }: Tool): string {
  return Object.hasOwn(properties, "session") ? "sluice_session" : "session";
}

function withHandle(listing: Tool, argument: string): Tool {
  const { properties = {} } = listing.inputSchema;
  return { ...listing, inputSchema: { ...listing.inputSchema, properties: { ...properties, [argument]: { type: "string" } } } };
}

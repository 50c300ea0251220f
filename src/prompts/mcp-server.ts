/** What a model reads when it uses Sluice through our MCP server: instructions, notes in results, and descriptions of resources. */

/** The server's instructions: the librarian's rules, then how data gets in and how long it stays. */
export function toMcpInstructions(librarianPrompt: string, { isByHandle }: { readonly isByHandle: boolean }): string {
  const state = isByHandle
    ? "Pass the session of a result with the next call: without it, a call gets a sandbox of its own and cannot see your aliases."
    : "Aliases and variables persist; a sandbox that is idle for a while is freed, and the next result says so.";
  return `${librarianPrompt}

Here: list_data lists the available data, store_data keeps JSON or CSV under a name, execute fetches with backend tools. ${state}
A failed call returns an error object: follow its hints.`;
}

/** Replaces the librarian's rules where no sandbox can be started. */
export function pythonUnavailable(message: string, hint: string | undefined): string {
  return `Python is not available here: ${message} ${hint ?? ""}`.trimEnd();
}

/** `session_note`: in the result of a call without a handle. */
export function newHandleNote(handle: string, idleMs: number): string {
  return `No session was passed, so this call had a sandbox of its own, which is closed now. Its aliases are kept for ${toDuration(idleMs)}. To use them, and to keep variables from now on, pass "session": ${JSON.stringify(handle)} with the next call.`;
}

/** `sandbox_note`: why the state of earlier cells is lost. */
export const sandboxNotes = {
  idle: (idleMs: number): string => `The sandbox was freed because it was unused for ${toDuration(idleMs)}. ${stateLost}`,
  disconnected: (graceMs: number): string =>
    `The sandbox was freed because the client closed the connection and did not return within ${toDuration(graceMs)}. ${stateLost}`,
  tokenSwapped:
    "The bearer token changed to one of another account. Aliases, variables and files that the earlier token left in this session are gone; fetch the data again. Files that the operator gave are still there.",
  reclaimed:
    "This idle sandbox was freed because another call needed one. Files of earlier cells are lost; aliases are kept. The next cell reports what happened to the variables.",
} as const;

const stateLost = "Variables and files of earlier cells are lost; aliases are kept.";

function toDuration(ms: number): string {
  if (ms % 60_000 === 0) return ms === 60_000 ? "1 minute" : `${ms / 60_000} minutes`;
  return `${ms / 1000} s`;
}

export const resourceTexts = {
  executeGuideTitle: "How execute scripts work",
  data: { title: "Data by alias, in pages", description: "Rows of an alias as JSON. next is the URI of the following page." },
  artifacts: { title: "Images and charts", description: "Addressed by the SHA-256 hash of their bytes." },
  chartApp: { title: "Chart", description: "Draws the charts of a result. Self-contained; no network." },
} as const;

export interface LinkedData {
  readonly alias: string;
  readonly rows: number | null;
  readonly bytes: number;
  readonly mimeType: string;
}

export function describeDataLink({ alias, rows, bytes, mimeType }: LinkedData): string {
  const size = `${rows === null ? "" : `${rows} rows, `}${bytes} bytes of ${mimeType}`;
  return `All of ${alias} (${size}) as pages of JSON rows. Each page has the URI of the next.`;
}

/** Why a picture or a chart is a link. */
export function describeLinkedArtifact({ alt, bytes, maxBytes }: { alt: string; bytes: number; maxBytes: number }): string {
  return `${alt} (${bytes} bytes; a result includes at most ${maxBytes} bytes of pictures and charts: read the resource)`;
}

/** The last line of a chart's table in the text of a result. */
export function omittedFromTable(omitted: readonly string[], url: string): string {
  return `Not shown: ${omitted.join(" and ")}. The complete data is in ${url}.`;
}

/** Sentences that Sluice adds to results: notes of previews, warnings of tool calls and `execute`, and notes of the identity tools. Notes of cells are in interpreter-tools.ts. */

export function previewNote(alias: string, hasRoundedNumbers: boolean): string {
  return `The whole output is available in Python as ${alias}.${hasRoundedNumbers ? " Numbers with ~ are rounded here, not there." : ""}`;
}

/** For a preview that shows nothing but the alias. */
export function shortPreviewNote(alias: string): string {
  return `Whole in Python as ${alias}.`;
}

/** For one preview that lists the aliases of several outputs. */
export function aliasListNote(isComplete: boolean): string {
  const start = "No room for previews. All are whole in Python under their aliases";
  return isComplete ? `${start}.` : `${start}; list(inputs) there names every one.`;
}

export function argumentOverriddenWarning(argument: string): string {
  return `${argument} is set by the identity context; the value in the call was ignored.`;
}

export function argumentsNotCheckedWarning(tool: string, reason: string): string {
  return `The arguments of ${tool} were not checked before the call: its schema cannot be used here (${reason}).`;
}

export function resultPreviewedWarning(bytes: number, alias: string): string {
  return `The result has ${bytes} bytes, so this is a preview. ${alias} is the whole result, for code_interpreter.`;
}

export function resultNotKeptWarning(bytes: number, reason: string): string {
  return `The result has ${bytes} bytes and could not be kept: ${reason} Return a summary instead.`;
}

export function unawaitedCallWarning(tool: string): string {
  return `The result of call_tool(${JSON.stringify(tool)}) was never awaited and is lost. Write await call_tool(...).`;
}

export function printsCutWarning(omittedBytes: number): string {
  return `${omittedBytes} bytes were cut from the middle of prints. Return data as the result instead.`;
}

export const nothingConfiguredNote =
  "No identities, regions or profiles are configured (session in the configuration). Tools are called without them.";

export const identityHints = {
  setFirst: "Call set_active_identity first; if state_scope is request, in each execute block.",
  newRequest: "No more tools can be called in this request. Send a new request and set the identity, region and profile again.",
} as const;

export const requestScopeNote = "This lasts for this request only: set it again in each execute block.";

export function clearedNote(kind: string): string {
  return `The active ${kind} does not belong to this identity and was cleared.`;
}

export function tokenSwappedNote(setters: readonly string[]): string {
  return `The bearer token of this session has changed, and everything set before was cleared: call ${setters.join(" and ")} too.`;
}

/** Why a script does not run in Monty: the end of a sentence that starts with "Line 3". */
export const reasonsForCpython = {
  missingModule: (module: string): string => `imports ${module}, which Monty does not have`,
  round: "uses round(x, n), which Monty rounds by the decimal text",
  comparison: "compares lists or sets with < or >, which Monty does not support",
  decorator: "has a decorator, which Monty does not apply",
  clock: "asks for the current time, which Monty does not have",
  remainder: "uses % with a float, which Monty computes wrongly if one side is negative",
  nestedQuotes: "has an f-string with quotes inside a field, which this check cannot read",
} as const;

/** Why a script does not run in Monty, from the message of Monty's parser. */
export function unsupportedReason({ message, line }: { readonly message: string; readonly line?: number | undefined }): string {
  return `${line === undefined ? "" : `Line ${line}: `}${message.replace(/^The monty syntax parser does not yet support /, "Monty does not support ")}.`;
}

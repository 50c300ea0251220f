import { isUtf8 } from "node:buffer";
import { constants } from "node:os";
import { isJson } from "../../waiting/is-json.ts";
import type { Death, Lease, Usage } from "../../sandbox/contract.ts";
import type { EngineEnd, ExecuteLimits } from "../contract.ts";
import type { CellError } from "../../protocol/outcome.ts";
import type { ScriptFrame } from "./script-frames.ts";

/** Why the host ended a script. */
export type ScriptStop = "executionMs" | "totalMs" | "toolCalls" | "aborted";

type DoneFrame = Extract<ScriptFrame, { type: "done" }>;
type EndedFrame = Extract<ScriptFrame, { type: "ended" }>;

/** The last that came from the sandbox. */
export type SeenEnd = { readonly frame: DoneFrame | EndedFrame; readonly body: Uint8Array } | { readonly lost: string };

export interface Judged {
  readonly seen: SeenEnd;
  readonly stop: ScriptStop | null;
  readonly lease: Lease;
  readonly before: Usage;
  readonly limits: ExecuteLimits;
  readonly executionMs: number;
  readonly totalMs: number;
  readonly toolCalls: number;
  readonly code: string;
}

/** The cause, from what the host itself saw; the worker is believed only about the script's own exception. */
export async function judgeScript(judged: Judged): Promise<EngineEnd> {
  const { seen, stop, lease, before, limits } = judged;
  if ("frame" in seen && seen.frame.type === "done") return await judgeDone(seen.frame, seen.body, judged);
  if (stop !== null && stop !== "aborted") return { kind: "limit", limit: stop, allowed: limits[stop], seen: Math.ceil(judged[stop]) };
  const death = "lost" in seen ? await deathOf(lease) : null;
  const after = await lease.usage().catch(() => before);
  if (after.memoryKills > before.memoryKills || death?.cause === "out_of_memory") return outOfMemory(limits);
  if ("frame" in seen) return { kind: "crashed", detail: describeEnded(seen.frame as EndedFrame) };
  const how = death !== null && death.cause !== "closed" ? ` (${death.detail})` : "";
  return { kind: "crashed", detail: `The sandbox is gone: ${seen.lost}${how}.` };
}

async function judgeDone(frame: DoneFrame, body: Uint8Array, { limits, code }: Judged): Promise<EngineEnd> {
  const error = frame.error ?? { type: "Error", message: "the script failed and did not say how" };
  switch (frame.status) {
    case "ok":
      return await judgeResult(body, limits);
    case "syntax_error":
      return { kind: "syntax", unsupported: false, message: syntaxMessage(error), line: error.line, column: error.column };
    case "memory_error":
      return outOfMemory(limits);
    case "output_limit":
      return { kind: "limit", limit: "resultBytes", allowed: limits.resultBytes, seen: error.limit?.seen };
    case "python_error":
      return { kind: "exception", ...toException(error, code) };
  }
}

/** That it is a syntax error is said by its kind; of nesting beyond reason Python says something else. */
function syntaxMessage({ type, message }: CellError): string {
  return ["SyntaxError", "IndentationError", "TabError"].includes(type) ? message : `${type}: ${message}`;
}

async function judgeResult(body: Uint8Array, { resultBytes }: ExecuteLimits): Promise<EngineEnd> {
  if (body.length > resultBytes) return { kind: "limit", limit: "resultBytes", allowed: resultBytes, seen: body.length };
  const json = isUtf8(body) ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(body) : null;
  if (json !== null && (await isJson(json))) return { kind: "value", json };
  return { kind: "crashed", detail: "The result that the sandbox sent is not JSON." };
}

function toException(
  { type, message, line, column, traceback }: CellError,
  code: string,
): Omit<Extract<EngineEnd, { kind: "exception" }>, "kind"> {
  // Without a line of the script's own, it happened in the worker, when the result was made to JSON: nobody can do anything with those frames.
  if (line === undefined) return { type, message };
  return { type, message, line, column, sourceLine: code.split(/\r\n|\r|\n/)[line - 1], traceback };
}

function outOfMemory({ memoryBytes }: ExecuteLimits): EngineEnd {
  return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
}

const signalNames = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

function describeEnded({ signal, exitCode }: EndedFrame): string {
  return signal === undefined
    ? `The process that ran the script ended by itself with exit status ${exitCode ?? "unknown"} (os._exit, or its channel was closed).`
    : `The process that ran the script died by ${signalNames.get(signal) ?? "a signal"} (signal ${signal}).`;
}

/** How the sandbox died, if that is known within a moment. */
async function deathOf({ died }: Lease): Promise<Death | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), 2_000);
  return await Promise.race([died, promise]).finally(() => clearTimeout(timer));
}

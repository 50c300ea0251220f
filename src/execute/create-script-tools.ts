import { setImmediate as nextTurn } from "node:timers/promises";
import type { ToolErrorCode } from "../errors/error-table.ts";
import { createToolError, serializeToolError, type ToolError, receivedType } from "../errors/tool-error.ts";
import type { EvidenceItem, EvidenceStore } from "../evidence/evidence-store.ts";
import { executeHints } from "../prompts/execute-hints.ts";
import { reservedToolNames } from "../tools/assign-names.ts";
import type { ToolFailure } from "../tools/tool-failure.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import type { CallTool, ExecuteLimits, ToolReply } from "./engine.ts";
import type { InvokeTool, ToolInvocation } from "./invoke-tool.ts";
import type { IdentityContext } from "./identity/identity-context.ts";

export interface KeptAlias {
  readonly alias: string;
  readonly tool: string;
  readonly bytes: number;
}

export interface ScriptTools {
  readonly callTool: CallTool;
  /** Outputs kept as evidence, in the order in which the answers arrived. */
  readonly aliases: readonly KeptAlias[];
  /** Warnings of the tools, with their names. */
  readonly warnings: ReadonlySet<string>;
}

export interface ScriptToolsOptions {
  readonly invoke: InvokeTool;
  readonly evidence: EvidenceStore;
  readonly limits: ExecuteLimits;
  readonly identity?: IdentityContext | undefined;
  readonly watch?: ScriptWatch | undefined;
  /** Replaces the policy that all scripts share. */
  readonly policy?: ToolPolicy | undefined;
}

/** Observes the calls of one script while it runs: a turn counts them and guards against loops. */
export interface ScriptWatch {
  /** Called for each requested call of a backend tool, but not for our own tools or for calls with unreadable parameters. */
  request(call: { readonly name: string; readonly args: Readonly<Record<string, unknown>> }): ScriptCallWatch;
}

interface ScriptCallWatch {
  /** Returns why the call is refused, or null if it is admitted. `overLimit` is set if the script's own call limit refuses it. */
  admit(overLimit: ToolError | null): ToolError | null;
  /** Called once, when the call has ended. */
  end(end: ScriptCallEnd): void;
}

export type ScriptCallEnd =
  /** Aliases of the kept output, the main part first. */
  | { readonly status: "ok"; readonly aliases: readonly string[] }
  /** `refused`: the backend was not called. */
  | { readonly status: "error" | "refused"; readonly failure: ToolFailure }
  | { readonly status: "aborted" };

const MAX_WARNINGS = 10;

/** Implements `call_tool` for one script: counts its calls, keeps their outputs as evidence and replies with the value of each. */
export function createScriptTools({ invoke, evidence, limits, identity, watch, policy }: ScriptToolsOptions): ScriptTools {
  const aliases: KeptAlias[] = [];
  const warnings = new Set<string>();
  let calls = 0;

  async function callTool({ name, paramsJson, signal }: Parameters<CallTool>[0]): Promise<ToolReply> {
    calls += 1;
    const overLimit = calls > limits.toolCalls ? tooManyCalls(name, limits.toolCalls) : null;
    const params = readParams(name, paramsJson);
    if (!params.ok) return refuse(overLimit ?? params.toolError);
    const { args } = params;
    const watched = reservedToolNames.has(name) ? undefined : watch?.request({ name, args });
    const refusal = watched === undefined ? overLimit : watched.admit(overLimit);
    if (refusal !== null) {
      watched?.end({ status: "refused", failure: { kind: "toolError", toolError: refusal } });
      return refuse(refusal);
    }
    try {
      const { reply, end } = await toReply(name, await invoke({ name, args, signal, evidence, identity, policy }));
      watched?.end(end);
      return reply;
    } catch (error) {
      watched?.end({ status: "aborted" });
      return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
  }

  async function toReply(name: string, invocation: ToolInvocation): Promise<{ reply: ToolReply; end: ScriptCallEnd }> {
    if ("json" in invocation) return { reply: invocation, end: { status: "ok", aliases: [] } };
    for (const warning of invocation.warnings) if (warnings.size < MAX_WARNINGS) warnings.add(`${name}: ${warning}`);
    if (!invocation.ok) {
      const { status, failure } = invocation;
      const message = failure.kind === "toolError" ? serializeToolError(failure.toolError) : `${failure.type}: ${failure.message}`;
      return { reply: { ok: false, message }, end: { status, failure } };
    }
    const { item, aliases: keptAliases } = invocation;
    for (const alias of keptAliases) aliases.push({ alias, tool: item.tool, bytes: evidence.get(alias)?.bytes ?? 0 });
    return { reply: { ok: true, json: await toPythonJson(item) }, end: { status: "ok", aliases: keptAliases } };
  }

  return { callTool, aliases, warnings };
}

function refuse(toolError: ToolError): ToolReply {
  return { ok: false, message: serializeToolError(toolError) };
}

type ReadParams =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly toolError: ToolError };

function readParams(tool: string, json: string): ReadParams {
  let values = 0;
  let inexact: string | undefined;
  let value: unknown;
  try {
    value = JSON.parse(json, (_key, item: unknown, context?: { readonly source?: string }) => {
      values += 1;
      if (values > MAX_PARAMS_VALUES) throw tooManyValues;
      if (typeof item === "number" && /^-?\d+$/.test(context?.source ?? "") && !Number.isSafeInteger(item)) inexact ??= context!.source;
      return item;
    });
  } catch (error) {
    if (error === tooManyValues) {
      const summary = `The parameters have more than ${MAX_PARAMS_VALUES} values.`;
      return wrong("SCHEMA_MAX_ITEMS", summary, "has too many values", "object", executeHints.tooManyValues);
    }
    if (error instanceof RangeError) return tooDeep();
    const summary = "The parameters contain nan or inf, which have no JSON form.";
    return wrong("SCHEMA_TYPE_MISMATCH", summary, "is nan or inf", "number", executeHints.noNan);
  }
  if (isDeeper(value, MAX_PARAMS_DEPTH)) return tooDeep();
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const summary = `The parameters of call_tool must be a dict, not ${receivedType(value)}.`;
    return wrong("SCHEMA_TYPE_MISMATCH", summary, "must be a dict", receivedType(value), executeHints.dictParameters);
  }
  if (inexact !== undefined) {
    const summary = `The integer ${inexact.slice(0, 400)} is past 2^53 and would lose digits on the way to the tool.`;
    return wrong("SCHEMA_TYPE_MISMATCH", summary, "is past 2^53", "number", executeHints.longIntegers);
  }
  return { ok: true, args: value as Record<string, unknown> };

  function tooDeep(): ReadParams {
    const summary = `The parameters are nested more than ${MAX_PARAMS_DEPTH} levels deep.`;
    return wrong("SCHEMA_TYPE_MISMATCH", summary, "is nested too deeply", "object", executeHints.flatterParameters);
  }

  function wrong(code: ToolErrorCode, summary: string, issue: string, received_type: string, hint: string): ReadParams {
    return {
      ok: false,
      toolError: createToolError({ code, tool, summary, details: [{ path: "params", issue, received_type }], hints: [hint] }),
    };
  }
}

const tooManyValues = new Error("too many values");

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}

const MAX_PARAMS_DEPTH = 100;
/** Each value is checked several times on the main thread before the call. */
const MAX_PARAMS_VALUES = 50_000;

function tooManyCalls(tool: string, allowed: number): ToolError {
  return createToolError({
    code: "SANDBOX_TOOL_CALL_LIMIT",
    tool,
    summary: `A script may make ${allowed} tool calls. This call was refused.`,
    details: [{ path: "toolCalls", issue: `more than ${allowed} calls`, received_type: "number" }],
    hints: [executeHints.continueLater, executeHints.largerPages],
  });
}

/** JSON as sent and text as a JSON string. Bytes are only described, because a script cannot use them. */
async function toPythonJson(item: EvidenceItem): Promise<string | Uint8Array> {
  const { alias, format, mimeType, bytes } = item;
  if (format === "json") return withoutByteOrderMark(item.read());
  if (format === "bytes" || format === "parquet" || format === "xlsx") return JSON.stringify({ alias, mime_type: mimeType ?? null, bytes });
  return await quoteText(item.read());
}

const PIECE_BYTES = 1024 * 1024;

/** Quotes a text as a JSON string, one megabyte per turn of the event loop: 50 MB at once would block it for a third of a second. */
async function quoteText(text: Uint8Array): Promise<Uint8Array> {
  const decoder = new TextDecoder();
  const pieces = [Buffer.from('"')];
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    if (at > 0) await nextTurn();
    const piece = decoder.decode(text.subarray(at, at + PIECE_BYTES), { stream: at + PIECE_BYTES < text.length });
    pieces.push(Buffer.from(JSON.stringify(piece).slice(1, -1)));
  }
  return Buffer.concat([...pieces, pieces[0]!]);
}

/** Python's `json.loads` rejects a byte order mark in a string. */
function withoutByteOrderMark(json: Uint8Array): Uint8Array {
  return json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf ? json.subarray(3) : json;
}

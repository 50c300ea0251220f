import { isObject } from "../mcp-result.ts";
import type { ReadPart } from "../output-part.ts";
import { readMcpResult } from "../read-mcp-result.ts";
import { scanMessage } from "./scan-message.ts";
import { toReadPart } from "./to-read-part.ts";

export type MessageId = string | number;

export type ReadMessage =
  /** The answer to a call of a tool. `result` is small: what the answer is made of is in `parts`. */
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly parts: ReadPart[] }
  /** Any other, whole. */
  | { readonly kind: "other"; readonly value: unknown }
  /** No JSON: how it begins. */
  | { readonly kind: "garbage"; readonly text: string };

const GARBAGE_CHARACTERS = 200;
/** What is no output goes on whole, to the thread that serves everybody. */
const MAX_OTHER_BYTES = 8 * 1024 * 1024;

/** The calls of tools that wait for an answer; `any` where only one can be. */
export type CallIds = readonly MessageId[] | "any";

/** Reads a large JSON-RPC message. Throws a RangeError for one that is too large for what it is. */
export function readMessage(bytes: Uint8Array, callIds: CallIds): ReadMessage {
  const text = new TextDecoder().decode(bytes);
  try {
    const message = read(cutOut(text), callIds);
    if (message.kind === "other" && bytes.length > MAX_OTHER_BYTES)
      throw new RangeError(`it is no answer to a call of a tool, and others may have ${MAX_OTHER_BYTES} bytes`);
    return message;
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: "garbage", text: text.slice(0, GARBAGE_CHARACTERS) };
    throw error;
  }
}

interface CutMessage {
  /** Without its `structuredContent`, which is parsed by itself, once: its text is what is kept. */
  readonly message: unknown;
  readonly structuredJson: string | undefined;
}

function cutOut(text: string): CutMessage {
  const { structuredJson, structuredAt = 0 } = scanMessage(text);
  if (structuredJson === undefined) return { message: JSON.parse(text) as unknown, structuredJson };
  const rest = `${text.slice(0, structuredAt)}null${text.slice(structuredAt + structuredJson.length)}`;
  const message = JSON.parse(rest) as { readonly result: Readonly<Record<string, unknown>> };
  const { structuredContent: _, ...result } = message.result;
  return { message: { ...message, result }, structuredJson };
}

function read(cut: CutMessage, callIds: CallIds): ReadMessage {
  const { message, structuredJson } = cut;
  if (!isObject(message) || "method" in message) return { kind: "other", value: whole(cut) };
  const { id, result } = message as { id: MessageId; result: unknown };
  if (!(callIds === "any" || callIds.includes(id)) || !isObject(result) || !isComplete(result)) return { kind: "other", value: whole(cut) };
  const parts = readMcpResult(result, structuredJson);
  if (structuredJson !== undefined && parts[0].body !== structuredJson) throw new SyntaxError("structuredContent is no JSON");
  return { kind: "answer", id, result: toSmallResult(result, structuredJson), parts: parts.map(toReadPart) };
}

function whole({ message, structuredJson }: CutMessage): unknown {
  if (structuredJson === undefined) return message;
  const { result, ...others } = message as { result: object };
  return { ...others, result: { ...result, structuredContent: JSON.parse(structuredJson) as unknown } };
}

/** From 2026-07-28 on, a result may also ask for something; that is for the SDK. */
function isComplete({ resultType }: Readonly<Record<string, unknown>>): boolean {
  return resultType === undefined || resultType === "complete";
}

const SMALL_CHARACTERS = 65_536;
/** As much as is looked at to tell what went wrong. */
const ERROR_CHARACTERS = 262_144;

/** What is left to be said of a result beside its parts. Of one that says `isError` its words, because nothing else is made of it. */
function toSmallResult(result: Readonly<Record<string, unknown>>, structuredJson?: string): Readonly<Record<string, unknown>> {
  const { content, ...others } = result;
  const small = Object.fromEntries(Object.entries(others).filter(([, value]) => JSON.stringify(value).length <= SMALL_CHARACTERS));
  if (result["isError"] !== true) return { ...small, content: [] };
  const isShort = structuredJson !== undefined && structuredJson.length <= ERROR_CHARACTERS;
  const structured = isShort ? { structuredContent: JSON.parse(structuredJson) as unknown } : {};
  return { ...small, content: Array.isArray(content) ? toWords(content) : [], ...structured };
}

function toWords(content: readonly unknown[]): unknown[] {
  const texts = content.slice(0, 100).flatMap((part) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : []));
  return texts.map((text) => ({ type: "text", text: text.slice(0, ERROR_CHARACTERS) }));
}

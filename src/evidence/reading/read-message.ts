import { startOf } from "../../text/clip-text.ts";
import { parseJson, scanMessage, isRecord } from "../../text/json.ts";
import { toReadPart, type ReadPart } from "../output-part.ts";
import { readMcpResult } from "../read-tool-output.ts";

export type MessageId = string | number;

export type ReadMessage =
  /** The answer to a call of a tool. `result` is small: what the answer is made of is in `parts`. */
  | { readonly kind: "answer"; readonly id: MessageId; readonly result: Readonly<Record<string, unknown>>; readonly parts: ReadPart[] }
  /** Any other, as it was sent. */
  | { readonly kind: "other"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** No JSON: how it begins. */
  | { readonly kind: "garbage"; readonly text: string };

const GARBAGE_CHARACTERS = 200;
/** What is no output goes on whole, to the main thread. */
const MAX_OTHER_BYTES = 8 * 1024 * 1024;

/** The calls of tools that wait for an answer; `any` where only one can be. */
export type CallIds = readonly MessageId[] | "any";

/** Reads a large JSON-RPC message. Throws a RangeError for one that is too large for what it is. */
export function readMessage(bytes: Uint8Array<ArrayBuffer>, callIds: CallIds): ReadMessage {
  const text = new TextDecoder().decode(bytes);
  const message = parseJson(text);
  if (message === undefined) return { kind: "garbage", text: startOf(text, GARBAGE_CHARACTERS) };
  if (isAnswer(message, callIds)) {
    const { structuredJson } = scanMessage(text);
    const parts = readMcpResult(message.result, structuredJson).map(toReadPart);
    return { kind: "answer", id: message.id, result: toSmallResult(message.result, structuredJson), parts };
  }
  if (bytes.length > MAX_OTHER_BYTES)
    throw new RangeError(`it is no answer to a call of a tool, and others may have ${MAX_OTHER_BYTES} bytes`);
  return { kind: "other", bytes };
}

/** From 2026-07-28 on, a result may also ask for something; that is for the SDK. */
function isAnswer(message: unknown, callIds: CallIds): message is { id: MessageId; result: Readonly<Record<string, unknown>> } {
  if (!isRecord(message) || "method" in message || !isRecord(message["result"])) return false;
  const { resultType } = message["result"];
  return (callIds === "any" || callIds.includes(message["id"] as MessageId)) && (resultType === undefined || resultType === "complete");
}

const SMALL_CHARACTERS = 65_536;
/** As much as is looked at to tell what went wrong. */
const ERROR_CHARACTERS = 262_144;

/** What is left to be said of a result beside its parts. Of one that says `isError` its words, because nothing else is made of it. */
function toSmallResult(result: Readonly<Record<string, unknown>>, structuredJson = ""): Readonly<Record<string, unknown>> {
  const { content, structuredContent, ...others } = result;
  const small = Object.fromEntries(Object.entries(others).filter(([, value]) => JSON.stringify(value).length <= SMALL_CHARACTERS));
  if (result["isError"] !== true) return { ...small, content: [] };
  const structured = structuredContent !== undefined && structuredJson.length <= ERROR_CHARACTERS ? { structuredContent } : {};
  return { ...small, content: Array.isArray(content) ? toWords(content) : [], ...structured };
}

function toWords(content: readonly unknown[]): unknown[] {
  const texts = content.slice(0, 100).flatMap((part) => (isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : []));
  return texts.map((text) => ({ type: "text", text: startOf(text, ERROR_CHARACTERS) }));
}

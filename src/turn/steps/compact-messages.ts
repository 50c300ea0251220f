import type { AssistantModelMessage } from "ai";
import { clipText, leftOutNote } from "../../text/clip-text.ts";

/** What is cut is cut to this share of the budget, so that the next steps change nothing, and a provider's cache of the prompt holds. */
const SHARE = 0.75;
const KEPT_CHARACTERS = 300;
const KEPT_BYTES = 2048;

/**
 * Makes what the model itself wrote fit: its texts, and the arguments of its calls, code among them. The oldest give way first; what it wrote last does only
 * when it is too much by itself. Reasoning is left as it is: providers take it back whole or not at all.
 */
export function compactMessages<Entry extends { readonly role: string }>(messages: readonly Entry[], maxBytes: number): Entry[] {
  const sizes = messages.map(bytesOf);
  let bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes <= maxBytes) return [...messages];
  return messages.map((message, index) => {
    if (!isOfModel(message) || bytes <= maxBytes * SHARE) return message;
    const cut = shorten(message);
    bytes -= sizes[index]! - bytesOf(cut);
    return cut;
  });
}

function isOfModel(message: { readonly role: string }): message is AssistantModelMessage {
  return message.role === "assistant";
}

function bytesOf(message: { readonly role: string }): number {
  if (!isOfModel(message)) return 0;
  if (typeof message.content === "string") return Buffer.byteLength(message.content);
  return message.content.reduce((sum, part) => sum + bytesOfPart(part), 0);
}

type Part = Exclude<AssistantModelMessage["content"], string>[number];

function bytesOfPart(part: Part): number {
  if (part.type === "text") return Buffer.byteLength(part.text);
  return part.type === "tool-call" ? Buffer.byteLength(JSON.stringify(part.input) ?? "") : 0;
}

function shorten<Message extends AssistantModelMessage>(message: Message): Message {
  if (typeof message.content === "string") return { ...message, content: clipText(message.content, KEPT_CHARACTERS, leftOutNote) };
  const content = message.content.map((part): Part => {
    if (part.type === "text") return { ...part, text: clipText(part.text, KEPT_CHARACTERS, leftOutNote) };
    return part.type === "tool-call" ? { ...part, input: shortenInput(part.input) } : part;
  });
  return { ...message, content };
}

/** Still an object, as providers demand. */
function shortenInput(input: unknown): unknown {
  const before = JSON.stringify(input) ?? "";
  const after =
    JSON.stringify(input, (_key, value: unknown) => (typeof value === "string" ? clipText(value, KEPT_CHARACTERS, leftOutNote) : value)) ??
    "";
  if (before.length === after.length && before.length <= KEPT_BYTES) return input;
  return after.length <= KEPT_BYTES
    ? (JSON.parse(after) as unknown)
    : { note: `${before.length} characters of arguments were left out to make room` };
}

import { send } from "./request.ts";

/** Loads only the first bytes of a text from the server. */
export async function readBeginning(path: string, maxBytes: number, signal: AbortSignal): Promise<{ text: string; isCut: boolean }> {
  const { body } = await send(path, { signal });
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of body ?? []) {
    const kept = chunk.subarray(0, maxBytes - bytes);
    text += decoder.decode(kept, { stream: true });
    bytes += kept.length;
    if (kept.length < chunk.length) return { text, isCut: true };
  }
  return { text: text + decoder.decode(), isCut: false };
}

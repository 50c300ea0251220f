import { setImmediate as nextTurn } from "node:timers/promises";
import type { PrecisionLoss } from "../contract.ts";
import { toJsonText } from "../to-json-text.ts";

/** Values and hundreds of characters that are written at once: a millisecond or two. */
const PARTS_A_TURN = 5_000;
const MAX_DEPTH = 100;

/** Whether a value is so large that writing it as JSON would hold up others. */
export function isLargeValue(value: unknown): boolean {
  return partsOf(value, LARGE_PARTS, 0) >= LARGE_PARTS;
}

const LARGE_PARTS = 50_000;

/**
 * Gives `push` the text that `toJsonText` gives, a piece in each turn of the event loop, and tells what is lost. The value must not be changed meanwhile.
 * Throws as `toJsonText` does, and a RangeError where a value is nested without end, or too deeply for this way.
 */
export async function writeInTurns(root: unknown, push: (text: string) => void): Promise<PrecisionLoss | undefined> {
  const around = new Set<unknown>();
  const loss = { integersPast2To53: 0, nonFinite: 0, unrepresentable: 0 };
  await write(root, 0);
  const isLossless = Object.values(loss).every((count) => count === 0);
  return isLossless ? undefined : loss;

  async function write(value: unknown, depth: number): Promise<void> {
    if (depth > MAX_DEPTH || around.has(value)) throw new RangeError("nested too deeply");
    if (typeof value === "object") around.add(value);
    if (partsOf(value, PARTS_A_TURN, 0) < PARTS_A_TURN) writeNow(value);
    else if (Array.isArray(value)) await writeList(value, depth);
    else if (isPlainObject(value)) await writeObject(value, depth);
    else writeNow(value); // a long text, or what says itself how it is written
    around.delete(value);
    await nextTurn();
  }

  function writeNow(value: unknown, isInside = false): void {
    const { text, precisionLoss } = toJsonText(value);
    push(isInside ? text.slice(1, -1) : text);
    if (precisionLoss === undefined) return;
    loss.integersPast2To53 += precisionLoss.integersPast2To53;
    loss.nonFinite += precisionLoss.nonFinite;
    loss.unrepresentable += precisionLoss.unrepresentable;
  }

  /** Items that are small are written together. */
  async function writeList(list: readonly unknown[], depth: number): Promise<void> {
    push("[");
    for (let from = 0; from < list.length;) {
      if (from > 0) push(",");
      const to = endOfTurn(list, from);
      if (to === from) {
        await write(list[from], depth + 1);
        from += 1;
        continue;
      }
      writeNow(list.slice(from, to), true);
      await nextTurn();
      from = to;
    }
    push("]");
  }

  async function writeObject(value: Readonly<Record<string, unknown>>, depth: number): Promise<void> {
    let before = "{";
    for (const [key, item] of Object.entries(value)) {
      if (typeof item === "function" || typeof item === "symbol") loss.unrepresentable += 1;
      if (item === undefined || typeof item === "function" || typeof item === "symbol") continue;
      push(`${before}${JSON.stringify(key)}:`);
      before = ",";
      if (typeof item === "object" && item !== null) await write(item, depth + 1);
      else writeNow(item);
    }
    push(before === "{" ? "{}" : "}");
  }
}

function endOfTurn(list: readonly unknown[], from: number): number {
  let left = PARTS_A_TURN;
  let to = from;
  while (to < list.length && left > 0) {
    left -= partsOf(list[to], left, 0);
    if (left > 0) to += 1;
  }
  return to;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || "toJSON" in value) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Counted up to `most`. Bytes are no JSON and are looked at elsewhere. */
function partsOf(value: unknown, most: number, depth: number): number {
  if (typeof value === "string") return 1 + Math.floor(value.length / 100);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || depth > MAX_DEPTH) return 1;
  let parts = 1;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && parts < most; at += 1) parts += partsOf(value[at], most - parts, depth + 1);
    return parts;
  }
  for (const key in value) {
    if (parts >= most) break;
    parts += partsOf((value as Readonly<Record<string, unknown>>)[key], most - parts, depth + 1);
  }
  return parts;
}

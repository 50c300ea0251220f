import { setImmediate as nextTurn } from "node:timers/promises";
import type { PrecisionLoss } from "../evidence-store.ts";
import { isRecord } from "../../text/json.ts";
import { toJsonText, type JsonText } from "../to-json-text.ts";

const SLICE_ITEMS = 2_000;
const MAX_KEYS = 100;
const MAX_DEPTH = 3;

/** The text that `toJsonText` gives. Long lists at the root, or in the objects around them, are written in slices, each in a turn of the event loop. */
export async function writeLarge(root: unknown): Promise<Pick<JsonText, "text" | "precisionLoss">> {
  const losses: PrecisionLoss[] = [];
  const text = await write(root, 0);
  return { text, ...(losses.length === 0 ? {} : { precisionLoss: losses.reduce(add) }) };

  async function write(value: unknown, depth: number): Promise<string> {
    if (isLongList(value)) {
      const slices: string[] = [];
      for (let at = 0; at < value.length; at += SLICE_ITEMS) {
        slices.push(writeNow(value.slice(at, at + SLICE_ITEMS)).slice(1, -1));
        await nextTurn();
      }
      return `[${slices.join(",")}]`;
    }
    if (!isSmallObject(value) || depth > MAX_DEPTH) return writeNow(value);
    const members: string[] = [];
    for (const [key, item] of Object.entries(value)) {
      const isOpened = isLongList(item) || isSmallObject(item);
      members.push(isOpened ? `${JSON.stringify(key)}:${await write(item, depth + 1)}` : writeNow({ [key]: item }).slice(1, -1));
    }
    return `{${members.filter((member) => member !== "").join(",")}}`;
  }

  function writeNow(value: unknown): string {
    const written = toJsonText(value);
    if (written.precisionLoss !== undefined) losses.push(written.precisionLoss);
    return written.text;
  }
}

function isLongList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > SLICE_ITEMS && !("toJSON" in value);
}

function isSmallObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype || "toJSON" in value) return false;
  return Object.keys(value).length <= MAX_KEYS;
}

function add(one: PrecisionLoss, other: PrecisionLoss): PrecisionLoss {
  return {
    integersPast2To53: one.integersPast2To53 + other.integersPast2To53,
    nonFinite: one.nonFinite + other.nonFinite,
    unrepresentable: one.unrepresentable + other.unrepresentable,
  };
}

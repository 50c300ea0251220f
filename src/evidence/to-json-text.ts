import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { UsageError } from "../errors/sluice-error.ts";
import { isRecord, rawJson } from "../text/json.ts";
import type { EvidenceRecord } from "./evidence-record.ts";
import type { PrecisionLoss } from "./evidence-store.ts";

export interface JsonText {
  readonly text: string;
  /** The value that Python will see. */
  readonly value: unknown;
  readonly precisionLoss?: PrecisionLoss | undefined;
}

/** The JSON text of a parsed value, and what was lost when it was parsed. Integers of type bigint keep their digits. Throws EVIDENCE_NOT_JSON. */
export function toJsonText(value: unknown): JsonText {
  const text = write(value); // first, because it throws for cycles
  const { isPlain, ...precisionLoss } = inspect(value);
  const isLossless = Object.values(precisionLoss).every((count) => count === 0);
  return { text, value: isPlain ? value : JSON.parse(text), precisionLoss: isLossless ? undefined : precisionLoss };
}

function write(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return writeWithBigIntegers(value);
  }
}

function writeWithBigIntegers(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? rawJson(String(item)) : item)) ?? "null";
  } catch (cause) {
    throw new UsageError({
      code: "EVIDENCE_NOT_JSON",
      message: `The output cannot be written as JSON: ${cause instanceof Error ? cause.message.split("\n")[0] : String(cause)}.`,
      cause,
    });
  }
}

/** `isPlain`: parsing the JSON text would give an equal value. */
type Found = NonNullable<EvidenceRecord["precisionLoss"]> & { isPlain: boolean };

/** Iterative, because JSON may be nested deeper than the stack allows. */
function inspect(root: unknown): Found {
  const found: Found = { integersPast2To53: 0, nonFinite: 0, unrepresentable: 0, isPlain: true };
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "object" && value !== null) openMembers(value, open, found);
    else inspectScalar(value, found);
  }
  return found;
}

function openMembers(value: object, open: unknown[], found: Found): void {
  if (Array.isArray(value)) {
    for (const item of value) openItem(item, open, found);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    found.isPlain = false;
    if (!("toJSON" in value)) found.unrepresentable += 1;
    return;
  }
  if ("toJSON" in value && typeof value.toJSON === "function") found.isPlain = false;
  for (const key in value) openItem((value as Record<string, unknown>)[key], open, found);
}

/** Queues only objects and lists: most items of a large value are scalars. */
function openItem(item: unknown, open: unknown[], found: Found): void {
  if (typeof item === "object" && item !== null) open.push(item);
  else if (typeof item !== "string") inspectScalar(item, found);
}

function inspectScalar(value: unknown, found: Found): void {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) found.nonFinite += 1;
    else if (Number.isInteger(value) && !Number.isSafeInteger(value)) found.integersPast2To53 += 1;
  } else if (typeof value === "bigint" || value === undefined) {
    found.isPlain = false; // JSON omits undefined
  } else if (typeof value === "function" || typeof value === "symbol") {
    found.isPlain = false;
    found.unrepresentable += 1;
  }
}

const SLICE_ITEMS = 2_000;
const MAX_KEYS = 100;
const MAX_DEPTH = 3;

/** Like `toJsonText`, without blocking the event loop: writes long lists near the root in slices, and lets the event loop run after each. */
export async function toJsonTextInSlices(root: unknown): Promise<Pick<JsonText, "text" | "precisionLoss">> {
  const losses: PrecisionLoss[] = [];
  const text = await writeInSlices(root, 0);
  return { text, precisionLoss: losses.length === 0 ? undefined : losses.reduce(addLosses) };

  async function writeInSlices(value: unknown, depth: number): Promise<string> {
    if (isLongList(value)) {
      const slices: string[] = [];
      for (let at = 0; at < value.length; at += SLICE_ITEMS) {
        slices.push(writeNow(value.slice(at, at + SLICE_ITEMS)).slice(1, -1));
        await yieldToEventLoop();
      }
      return `[${slices.join(",")}]`;
    }
    if (!isSmallObject(value) || depth > MAX_DEPTH) return writeNow(value);
    const members: string[] = [];
    for (const [key, item] of Object.entries(value)) {
      const isOpened = isLongList(item) || isSmallObject(item);
      members.push(isOpened ? `${JSON.stringify(key)}:${await writeInSlices(item, depth + 1)}` : writeNow({ [key]: item }).slice(1, -1));
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

function addLosses(one: PrecisionLoss, other: PrecisionLoss): PrecisionLoss {
  return {
    integersPast2To53: one.integersPast2To53 + other.integersPast2To53,
    nonFinite: one.nonFinite + other.nonFinite,
    unrepresentable: one.unrepresentable + other.unrepresentable,
  };
}

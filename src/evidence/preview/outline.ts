import { clipText } from "../../text/clip-text.ts";
import { ExactNumber } from "../../text/json.ts";

/** JSON that can be cut to any size. Plain data, so that a worker thread can send it. */
export interface Outline {
  /** From short to full. An outline with members has one text, which replaces it if the members do not fit. */
  readonly texts: readonly [string, ...string[]];
  readonly members?: Members;
}

interface Members {
  readonly kind: keyof typeof writers;
  /** Keys are JSON texts with a colon; empty in lists. */
  readonly shown: readonly (readonly [key: string, value: Outline])[];
  readonly total: number;
}

/** Write the shown members and the number of omitted ones. A `node` is written only with all of its members. */
const writers = {
  list: (members: readonly string[], rest: number) => `[${withNote(members, rest, `"… ${rest} more items"`)}]`,
  object: (members: readonly string[], rest: number) => `{${withNote(members, rest, `"…":"${rest} more keys"`)}}`,
  fields: (members: readonly string[], rest: number) => `{${members.join(",")}}${rest > 0 ? `,"fieldsNotShown":${rest}` : ""}`,
  node: (members: readonly string[]) => `{${members.join(",")}}`,
};

function withNote(members: readonly string[], rest: number, note: string): string {
  return (rest > 0 ? [...members, note] : members).join(",");
}

/** Writes as much as fits, level by level: all members of a level before anything below. Writes at least the shortest text. */
export function renderOutline(root: Outline, maxBytes: number): string {
  const chosen = new Map<Outline, number>();
  const queue = [root];
  let left = maxBytes - Buffer.byteLength(root.texts[0]);
  const open = (outline: Outline): void => {
    const { texts, members } = outline;
    const room = left + Buffer.byteLength(texts[0]);
    const choice = members === undefined ? chooseText(texts, room) : chooseMembers(members, room);
    if (choice === null) return;
    chosen.set(outline, choice.count);
    left = room - choice.bytes;
    for (const [, value] of members?.shown.slice(0, choice.count) ?? []) {
      if (value.members?.kind === "fields") open(value); // fields are the most useful part of an object
      else queue.push(value);
    }
  };
  for (const outline of queue) open(outline);
  const write = (outline: Outline): string => {
    const { texts, members } = outline;
    const count = chosen.get(outline);
    if (count === undefined || members === undefined) return texts[count ?? 0]!;
    const written = members.shown.slice(0, count).map(([key, value]) => key + write(value));
    return writers[members.kind](written, members.total - count);
  };
  return write(root);
}

interface Choice {
  readonly count: number;
  readonly bytes: number;
}

function chooseText(texts: readonly string[], room: number): Choice | null {
  const count = texts.findLastIndex((text, index) => index > 0 && Buffer.byteLength(text) <= room);
  return count === -1 ? null : { count, bytes: Buffer.byteLength(texts[count]!) };
}

function chooseMembers({ kind, shown, total }: Members, room: number): Choice | null {
  const noteBytes = Buffer.byteLength(writers[kind]([], total)) - 2;
  let bytes = noteBytes + 2;
  let count = 0;
  for (const [key, { texts }] of shown) {
    const more = bytes + Buffer.byteLength(key) + Buffer.byteLength(texts[0]) + 1;
    if (more > room) break;
    bytes = more;
    count += 1;
  }
  if (count === 0 || (kind === "node" && count < total)) return null;
  return { count, bytes: count < total ? bytes : bytes - noteBytes };
}

const MAX_VALUES = 1000;
const MAX_DEPTH = 6;
const MAX_ITEMS = 20;
const MAX_KEYS = 100;
const MAX_DIGITS = 500;
const TEXT_CHARACTERS = [50, 150, 500];

interface Walk {
  /** A value that is shown elsewhere, and the text that replaces it. */
  readonly elsewhere: { readonly value: unknown; readonly text: string } | undefined;
  left: number;
}

/** Outlines a value. Long parts are cut, and each cut says how much is missing: `… 95 more items`. */
export function outlineValue(value: unknown, elsewhere?: Walk["elsewhere"]): Outline {
  return toOutline(value, 0, { elsewhere, left: MAX_VALUES });
}

function toOutline(value: unknown, depth: number, walk: Walk): Outline {
  walk.left -= 1;
  if (typeof value === "string") return outlineText(value);
  if (typeof value === "number") return outlineJson(showNumber(value));
  if (typeof value !== "object" || value === null) return outlineJson(value ?? null);
  if (value === walk.elsewhere?.value) return outlineJson(walk.elsewhere.text);
  if (value instanceof ExactNumber) return outlineJson(value.source.length <= MAX_DIGITS ? value : `~${value.rounded}`);
  const isList = Array.isArray(value);
  const keys = isList ? value : Object.keys(value);
  if (keys.length === 0) return outlineJson(value);
  const texts = [JSON.stringify(isList ? `… list of ${keys.length}` : `… object with ${keys.length} keys`)] as const;
  if (depth >= MAX_DEPTH || walk.left <= 0) return { texts };
  const inner = (item: unknown): Outline => toOutline(item, depth + 1, walk);
  const shown = isList
    ? value.slice(0, MAX_ITEMS).map((item) => ["", inner(item)] as const)
    : [...new Map(keys.slice(0, MAX_KEYS).map((key: string) => [toKey(key), inner((value as Record<string, unknown>)[key])]))];
  return { texts, members: { kind: isList ? "list" : "object", shown, total: keys.length } };
}

function outlineText(text: string): Outline {
  const [shortest, ...others] = new Set(TEXT_CHARACTERS.map((characters) => JSON.stringify(clipText(text, characters))));
  return { texts: [shortest!, ...others] };
}

export function outlineJson(value: unknown): Outline {
  return { texts: [JSON.stringify(value)] };
}

/** A key as JSON text with a colon. Long keys are cut. */
export function toKey(name: string): string {
  return `${JSON.stringify(clipText(name, 80))}:`;
}

/** A number that may have lost digits is shown as text with a tilde, so that it does not look exact. */
export function showNumber(value: number): number | string {
  const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isExact ? value : `~${value}`;
}

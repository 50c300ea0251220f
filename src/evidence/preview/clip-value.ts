import { ExactNumber } from "../exact-number.ts";
import { clipText } from "./clip-text.ts";
import { showNumber } from "./show-number.ts";

export interface ClipLimits {
  readonly characters: number;
  readonly items: number;
  readonly keys: number;
  readonly depth: number;
}

/** From generous to terse. */
export const clipLevels: readonly ClipLimits[] = [
  { characters: 500, items: 20, keys: 100, depth: 6 },
  { characters: 160, items: 8, keys: 40, depth: 4 },
  { characters: 60, items: 4, keys: 20, depth: 3 },
  { characters: 24, items: 2, keys: 8, depth: 1 },
];

const MAX_VALUES = 2000;

interface Clip {
  readonly limits: ClipLimits;
  /** Shown elsewhere: replaced by this text. */
  readonly elsewhere?: { readonly value: unknown; readonly text: string };
  left: number;
}

/** A value with everything long cut, and each cut counted in its place: `… 95 more items`. */
export function clipValue(value: unknown, limits: ClipLimits, elsewhere?: Clip["elsewhere"]): unknown {
  return clip(value, 0, { limits, left: MAX_VALUES, ...(elsewhere ? { elsewhere } : {}) });
}

function clip(value: unknown, depth: number, clipping: Clip): unknown {
  clipping.left -= 1;
  if (typeof value === "string") return clipText(value, clipping.limits.characters);
  if (typeof value === "number") return showNumber(value);
  if (typeof value !== "object" || value === null) return value ?? null;
  if (value === clipping.elsewhere?.value) return clipping.elsewhere.text;
  if (value instanceof ExactNumber) return value.source.length <= Math.max(40, clipping.limits.characters) ? value : `~${value.rounded}`;
  return Array.isArray(value) ? clipList(value, depth, clipping) : clipObject(value as Record<string, unknown>, depth, clipping);
}

function clipList(list: readonly unknown[], depth: number, clipping: Clip): unknown {
  if (list.length === 0) return [];
  if (depth >= clipping.limits.depth || clipping.left <= 0) return `… list of ${list.length}`;
  const shown = list.slice(0, clipping.limits.items).map((item) => clip(item, depth + 1, clipping));
  const rest = list.length - shown.length;
  return rest === 0 ? shown : [...shown, `… ${rest} more items`];
}

function clipObject(value: Readonly<Record<string, unknown>>, depth: number, clipping: Clip): unknown {
  const keys = Object.keys(value);
  if (keys.length === 0) return {};
  if (depth >= clipping.limits.depth || clipping.left <= 0) return `… object with ${keys.length} keys`;
  const entries = new Map(
    keys.slice(0, clipping.limits.keys).map((key) => [clipText(key, 80), clip(value[key], depth + 1, clipping)] as const),
  );
  const rest = keys.length - entries.size;
  if (rest > 0) entries.set("…", `${rest} more keys`);
  return Object.fromEntries(entries);
}

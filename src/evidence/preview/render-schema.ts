import { clipText } from "../../text/clip-text.ts";
import type { Summary } from "./summarize.ts";
import { ExactNumber } from "../../text/json.ts";

const MAX_VALUE_CHARACTERS = 40;

/** The schema as JSON text. What is left out is counted in its place. */
export function renderSchema(summary: Summary, limits: ShowLimits): string {
  return JSON.stringify(toNode(summary, limits, 0));
}

type Node = Record<string, unknown>;

function toNode(summary: Summary, detail: ShowLimits, depth: number): Node {
  return {
    type: toTypeText(summary),
    ...toNulls(summary),
    ...toRange(summary),
    ...toText(summary, detail),
    ...toItems(summary, detail, depth),
    ...toFields(summary, detail, depth),
  };
}

function toNulls({ nulls, seen }: Summary): Node {
  return nulls === 0 || nulls === seen ? {} : { nulls: share(nulls, seen) };
}

/** One value has no range. */
function toRange({ integers, decimals, min, max }: Summary): Node {
  return integers + decimals < 2 ? {} : { min: showNumber(min), max: showNumber(max) };
}

function toText(summary: Summary, { values }: ShowLimits): Node {
  const { strings, dates, firstDate, lastDate, minCharacters, maxCharacters, distinct, integers, decimals, seen } = summary;
  const small = [...(distinct ?? [])];
  const isSmallSet = distinct !== null && small.length > 0 && small.length <= values && decimals === 0 && strings + integers > small.length;
  const isShort = maxCharacters <= MAX_VALUE_CHARACTERS && small.every((value) => typeof value === "string" || Number.isSafeInteger(value));
  return {
    ...(dates > 0 && dates === strings ? { dates: [firstDate, lastDate] } : {}),
    ...(strings > 0 && maxCharacters > MAX_VALUE_CHARACTERS ? { characters: [minCharacters, maxCharacters] } : {}),
    ...(isSmallSet && isShort ? { values: small.map((value) => (typeof value === "string" ? value.toWellFormed() : value)) } : {}),
    ...(isSmallSet && !isShort && seen > 1 ? { distinct: small.length } : {}),
  };
}

function toItems(summary: Summary, detail: ShowLimits, depth: number): Node {
  const { arrays, maps, minLength, maxLength, items, itemsSeen, itemsTotal } = summary;
  if (arrays + maps === 0) return {};
  return {
    [maps > 0 && arrays === 0 ? "keys" : "length"]: minLength === maxLength ? minLength : [minLength, maxLength],
    ...(items === null ? {} : { items: depth < detail.depth ? toNode(items, detail, depth + 1) : toTypeText(items) }),
    ...(itemsSeen < itemsTotal ? { itemsLookedAt: `${itemsSeen} of ${itemsTotal}` } : {}),
  };
}

function toFields(summary: Summary, detail: ShowLimits, depth: number): Node {
  const { objects, maps, opened, fields, otherFields } = summary;
  const unopened = objects - opened - maps;
  const notOpened = unopened > 0 ? { notLookedInto: unopened } : {};
  if (fields.size === 0) return notOpened;
  const total = fields.size + otherFields.size;
  if (depth >= detail.depth) return { fieldsNotShown: total, ...notOpened };
  const shown = new Map(
    [...fields].slice(0, detail.fields).map(([name, field]) => {
      const missing = opened - field.seen;
      const node = toNode(field, detail, depth + 1);
      return [clipText(name, 80), missing > 0 ? { ...node, missing: share(missing, opened) } : node] as const;
    }),
  );
  return { fields: Object.fromEntries(shown), ...(total > shown.size ? { fieldsNotShown: total - shown.size } : {}), ...notOpened };
}

function toTypeText({ integers, decimals, strings, booleans, objects, arrays, nulls, seen }: Summary): string {
  const types = [
    ...(decimals > 0 ? ["number"] : []),
    ...(integers > 0 && decimals === 0 ? ["integer"] : []),
    ...(strings > 0 ? ["string"] : []),
    ...(booleans > 0 ? ["boolean"] : []),
    ...(objects > 0 ? ["object"] : []),
    ...(arrays > 0 ? ["array"] : []),
    ...(nulls > 0 ? ["null"] : []),
  ];
  return seen === 0 ? "nothing seen" : types.join(" or ");
}

/** Three decimals; what is neither none nor all never looks like it. */
function share(part: number, whole: number): number {
  return Math.min(0.999, Math.max(0.001, Math.round((part / whole) * 1000) / 1000));
}

/** How much a preview shows: n rows at each end, and of everything inside of them and of the schema as much as goes with that. */
export interface ShowLimits {
  readonly rows: number;
  readonly characters: number;
  readonly items: number;
  readonly keys: number;
  readonly depth: number;
  readonly fields: number;
  readonly values: number;
}

/** n halves until a preview fits. */
export const showLevels: readonly ShowLimits[] = [10, 5, 2, 1].map((n) => ({
  rows: n,
  characters: 50 * n,
  items: 2 * n,
  keys: 10 * n,
  depth: Math.min(6, n + 1),
  fields: 20 * n,
  values: n + 2,
}));

const MAX_VALUES = 2000;

interface Clip {
  readonly limits: ShowLimits;
  /** Shown elsewhere: replaced by this text. */
  readonly elsewhere?: { readonly value: unknown; readonly text: string };
  left: number;
}

/** A value with everything long cut, and each cut counted in its place: `… 95 more items`. */
export function showValue(value: unknown, limits: ShowLimits, elsewhere?: Clip["elsewhere"]): unknown {
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

/** A number that may have lost digits on the way is text with a tilde, so that nobody takes it for exact. */
function showNumber(value: number): number | string {
  const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isExact ? value : `~${value}`;
}

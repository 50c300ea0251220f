import { clipText } from "./clip-text.ts";
import { showNumber } from "./show-number.ts";
import type { Summary } from "./summary.ts";

/** How much a schema says: `fields` names at each place, `values` of small sets, `depth` levels of nesting. */
interface SchemaDetail {
  readonly fields: number;
  readonly values: number;
  readonly ranges: boolean;
  readonly depth: number;
}

const details: readonly SchemaDetail[] = [
  { fields: 200, values: 12, ranges: true, depth: 6 },
  { fields: 100, values: 6, ranges: true, depth: 4 },
  { fields: 60, values: 0, ranges: true, depth: 3 },
  { fields: 60, values: 0, ranges: false, depth: 1 },
  { fields: 24, values: 0, ranges: false, depth: 1 },
];

const SHOWN_NAMES = 12;
const MAX_VALUE_CHARACTERS = 40;

/** The schema as JSON texts, each terser than the one before; the last names fields only. What is left out is counted in its place. */
export function renderSchema(summary: Summary): string[] {
  const texts = details.map((detail) => JSON.stringify(detail.ranges ? toNode(summary, detail, 0) : toTypes(summary, detail, 0)));
  texts.push(JSON.stringify(summary.fields.size > 0 ? toNames(summary) : toTypeText(summary)));
  return texts.filter((text, index) => index === 0 || text.length < texts[index - 1]!.length);
}

type Node = Record<string, unknown>;

function toNode(summary: Summary, detail: SchemaDetail, depth: number): Node {
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

function toText(summary: Summary, { values }: SchemaDetail): Node {
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

function toItems(summary: Summary, detail: SchemaDetail, depth: number): Node {
  const { arrays, maps, minLength, maxLength, items, itemsSeen, itemsTotal } = summary;
  if (arrays + maps === 0) return {};
  return {
    [maps > 0 && arrays === 0 ? "keys" : "length"]: minLength === maxLength ? minLength : [minLength, maxLength],
    ...(items === null ? {} : { items: depth < detail.depth ? toNode(items, detail, depth + 1) : toTypeText(items) }),
    ...(itemsSeen < itemsTotal ? { itemsLookedAt: `${itemsSeen} of ${itemsTotal}` } : {}),
  };
}

function toFields(summary: Summary, detail: SchemaDetail, depth: number): Node {
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

/** Names with their types, nested once. */
function toTypes(summary: Summary, detail: SchemaDetail, depth: number): unknown {
  const { fields, otherFields, items, arrays, maps, opened } = summary;
  if (depth > detail.depth || (fields.size === 0 && items === null)) return toTypeText(summary);
  if (fields.size === 0) return { type: toTypeText(summary), ...(arrays + maps > 0 ? { items: toTypes(items!, detail, depth + 1) } : {}) };
  const shown = new Map(
    [...fields].slice(0, detail.fields).map(([name, field]) => {
      const type = toTypes(field, detail, depth + 1);
      return [clipText(name, 80), typeof type === "string" && field.seen < opened ? `${type} or missing` : type] as const;
    }),
  );
  const rest = fields.size + otherFields.size - shown.size;
  return { fields: Object.fromEntries(shown), ...(rest > 0 ? { fieldsNotShown: rest } : {}) };
}

function toNames({ fields, otherFields }: Summary): Node {
  const names = [...fields.keys()].slice(0, SHOWN_NAMES).map((name) => clipText(name, 24));
  const rest = fields.size + otherFields.size - names.length;
  return { names, ...(rest > 0 ? { fieldsNotShown: rest } : {}) };
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

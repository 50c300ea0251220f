import { outlineJson, showNumber, toKey, type Outline } from "./outline.ts";
import type { Summary } from "./summarize.ts";

const MAX_NODES = 1000;
const MAX_FIELDS = 200;
const MAX_VALUE_CHARACTERS = 40;

/** A schema that can be cut to any size: from the type alone to all facts found. Omitted fields are counted. */
export function outlineSchema(summary: Summary): Outline {
  return toNode(summary, 0, { left: MAX_NODES });
}

type Facts = Record<string, unknown>;

/** `missing`: the share of parent objects without this field. */
function toNode(summary: Summary, missing: number, walk: { left: number }): Outline {
  walk.left -= 1;
  const type = toTypeText(summary);
  const facts = {
    type,
    ...toNulls(summary),
    ...toRange(summary),
    ...toText(summary),
    ...toLengths(summary),
    ...(missing > 0 ? { missing } : {}),
  };
  const shown = [
    ...Object.entries(facts).map(([name, value]) => [toKey(name), outlineJson(value)] as const),
    ...(summary.items === null ? [] : [[toKey("items"), toNode(summary.items, 0, walk)] as const]),
    ...(summary.fields.size === 0 ? [] : [[toKey("fields"), toFields(summary, walk)] as const]),
  ];
  return { texts: [JSON.stringify(missing > 0 ? `${type} or missing` : type)], members: { kind: "node", shown, total: shown.length } };
}

function toNulls({ nulls, seen }: Summary): Facts {
  return nulls === 0 || nulls === seen ? {} : { nulls: share(nulls, seen) };
}

/** A single number has no range. */
function toRange({ integers, decimals, min, max }: Summary): Facts {
  return integers + decimals < 2 ? {} : { min: showNumber(min), max: showNumber(max) };
}

function toText(summary: Summary): Facts {
  const { strings, dates, firstDate, lastDate, minCharacters, maxCharacters, distinct, integers, decimals, seen } = summary;
  const small = [...(distinct ?? [])];
  const isSmallSet = distinct !== null && small.length > 0 && decimals === 0 && strings + integers > small.length;
  const isShort = maxCharacters <= MAX_VALUE_CHARACTERS && small.every((value) => typeof value === "string" || Number.isSafeInteger(value));
  return {
    ...(dates > 0 && dates === strings ? { dates: [firstDate, lastDate] } : {}),
    ...(strings > 0 && maxCharacters > MAX_VALUE_CHARACTERS ? { characters: [minCharacters, maxCharacters] } : {}),
    ...(isSmallSet && isShort ? { values: small.map((value) => (typeof value === "string" ? value.toWellFormed() : value)) } : {}),
    ...(isSmallSet && !isShort && seen > 1 ? { distinct: small.length } : {}),
  };
}

function toLengths({ arrays, maps, minLength, maxLength, itemsSeen, itemsTotal, objects, opened }: Summary): Facts {
  const unopened = objects - opened - maps;
  return {
    ...(arrays + maps === 0 ? {} : { [arrays === 0 ? "keys" : "length"]: minLength === maxLength ? minLength : [minLength, maxLength] }),
    ...(itemsSeen < itemsTotal ? { itemsLookedAt: `${itemsSeen} of ${itemsTotal}` } : {}),
    ...(unopened > 0 ? { notLookedInto: unopened } : {}),
  };
}

function toFields({ fields, otherFields, opened }: Summary, walk: { left: number }): Outline {
  const total = fields.size + otherFields.size;
  const names = walk.left > 0 ? [...fields].slice(0, MAX_FIELDS) : [];
  const shown = new Map(
    names.map(([name, field]) => [toKey(name), toNode(field, field.seen < opened ? share(opened - field.seen, opened) : 0, walk)]),
  );
  return { texts: [`{},"fieldsNotShown":${total}`], members: { kind: "fields", shown: [...shown], total } };
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

/** Rounded to three decimals, but never to 0 or 1: neither none nor all. */
function share(part: number, whole: number): number {
  return Math.min(0.999, Math.max(0.001, Math.round((part / whole) * 1000) / 1000));
}

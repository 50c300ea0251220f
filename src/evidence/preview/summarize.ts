import { ExactNumber } from "../../text/json.ts";
import { isMap, type ReadKeys } from "./find-rows.ts";

const MAX_DISTINCT = 12;

/** What was seen at one place of a value, over all rows that were looked at. */
export class Summary {
  seen = 0;
  nulls = 0;
  booleans = 0;
  integers = 0;
  decimals = 0;
  strings = 0;
  dates = 0;
  objects = 0;
  arrays = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  firstDate = "";
  lastDate = "";
  minCharacters = Number.POSITIVE_INFINITY;
  maxCharacters = 0;
  /** Every different string or integer, until there are too many: then null. */
  distinct: Set<string | number> | null = new Set();
  /** Objects whose fields were looked at; the others came when the walk was over its budget. */
  opened = 0;
  readonly fields = new Map<string, Summary>();
  /** Names past the most that are followed. */
  readonly otherFields = new Set<string>();
  /** Of objects that are dictionaries: how many keys, and their values as `items`. */
  maps = 0;
  items: Summary | null = null;
  itemsSeen = 0;
  itemsTotal = 0;
  minLength = Number.POSITIVE_INFINITY;
  maxLength = 0;
}

/** How many values are looked at unless told: all of most outputs. It bounds the time that a preview takes. */
export const SUMMARIZED_VALUES: number = 60_000;
const MIN_ROWS = 20;
/** Longer strings are no small set that a preview would show, and telling them apart takes as long as parsing them. */
const MAX_DISTINCT_CHARACTERS = 200;
/** A string counts once more for each so many characters: text of long ones is parsed in less time than all of them could be looked at. */
const VALUE_CHARACTERS = 200;
const MAX_DEPTH = 8;
const MAX_FIELDS = 300;
const MAX_ITEMS_INSIDE_ROWS = 64;

interface Walk {
  left: number;
  /** What each list outside of rows may use. */
  readonly perList: number;
  readonly readKeys: ReadKeys;
}

/**
 * Types, null shares, ranges and small sets of a value, by place. Lists on the way to the rows are sampled evenly when they are long, lists inside
 * rows at 64 items. Each summary says how much of how much it has seen, so that nothing from a sample looks exact.
 */
export function summarize(root: unknown, readKeys: ReadKeys, values: number = SUMMARIZED_VALUES): Summary {
  const summary = new Summary();
  const perList = values / Math.max(1, countLists(root, 0, { left: 5000, readKeys }));
  observe(summary, root, { walk: { left: values * 2, perList, readKeys }, depth: 0, isInRow: false });
  return summary;
}

interface Place {
  readonly walk: Walk;
  readonly depth: number;
  readonly isInRow: boolean;
  /** A row is a record, however many fields it has. */
  readonly isRow?: boolean;
}

function observe(summary: Summary, value: unknown, place: Place): void {
  summary.seen += 1;
  place.walk.left -= 1;
  if (value === null || value === undefined) summary.nulls += 1;
  else if (typeof value === "string") observeString(summary, value);
  else if (typeof value === "number") observeNumber(summary, value);
  else if (typeof value === "boolean") summary.booleans += 1;
  else if (value instanceof ExactNumber) observeNumber(summary, value.rounded);
  else if (Array.isArray(value)) observeList(summary, value, place);
  else observeObject(summary, value as Readonly<Record<string, unknown>>, place);
}

function observeString(summary: Summary, value: string): void {
  summary.strings += 1;
  if (value.length < summary.minCharacters) summary.minCharacters = value.length;
  if (value.length > summary.maxCharacters) summary.maxCharacters = value.length;
  if (value.length <= MAX_DISTINCT_CHARACTERS) addDistinct(summary, value);
  else summary.distinct = null;
  if (!isDate(value)) return;
  summary.dates += 1;
  if (summary.dates === 1 || value < summary.firstDate) summary.firstDate = value;
  if (summary.dates === 1 || value > summary.lastDate) summary.lastDate = value;
}

function observeNumber(summary: Summary, value: number): void {
  if (Number.isInteger(value)) {
    summary.integers += 1;
    addDistinct(summary, value);
  } else {
    summary.decimals += 1;
  }
  if (value < summary.min) summary.min = value;
  if (value > summary.max) summary.max = value;
}

function addDistinct(summary: Summary, value: string | number): void {
  if (summary.distinct === null) return;
  summary.distinct.add(value);
  if (summary.distinct.size > MAX_DISTINCT) summary.distinct = null;
}

/**
 * Items are read with `at` and not by index: where it has seen a list of integers and one of decimals, the compiler turns each whole list of integers into one
 * of decimals before it reads by index from it. Of a column of millions that takes a tenth of the time of parsing it.
 */
function observeList(summary: Summary, list: readonly unknown[], place: Place): void {
  summary.arrays += 1;
  observeItems(summary, list.length, (index) => list.at(index), place);
}

function observeItems(summary: Summary, length: number, item: (index: number) => unknown, { walk, depth, isInRow }: Place): void {
  summary.itemsTotal += length;
  if (length < summary.minLength) summary.minLength = length;
  if (length > summary.maxLength) summary.maxLength = length;
  if (depth >= MAX_DEPTH || length === 0) return;
  summary.items ??= new Summary();
  const take = isInRow ? MAX_ITEMS_INSIDE_ROWS : Math.max(MIN_ROWS, Math.floor(walk.perList / valuesPerItem(length, item)));
  for (const index of spread(length, take)) {
    if (walk.left <= 0) return;
    summary.itemsSeen += 1;
    observe(summary.items, item(index), { walk, depth: depth + 1, isInRow: true, isRow: !isInRow });
  }
}

function observeObject(summary: Summary, value: Readonly<Record<string, unknown>>, { walk, depth, isInRow, isRow }: Place): void {
  summary.objects += 1;
  if (depth >= MAX_DEPTH || walk.left <= 0) return;
  const keys = walk.readKeys(value);
  if (isRow !== true && isMap(value, keys)) {
    summary.maps += 1;
    observeItems(summary, keys.length, (index) => value[keys[index]!], { walk, depth, isInRow });
    return;
  }
  summary.opened += 1;
  for (const key of keys) {
    const field = fieldOf(summary, key);
    if (field === null) walk.left -= 1;
    else observe(field, value[key], { walk, depth: depth + 1, isInRow });
  }
}

function fieldOf(summary: Summary, key: string): Summary | null {
  const known = summary.fields.get(key);
  if (known !== undefined) return known;
  if (summary.fields.size >= MAX_FIELDS) {
    summary.otherFields.add(key);
    return null;
  }
  const field = new Summary();
  summary.fields.set(key, field);
  return field;
}

/** ISO 8601 dates and times, which sort as text. Told without a regular expression over every long string. */
function isDate(value: string): boolean {
  return (
    value.length >= 7 &&
    value.length <= 35 &&
    value.charCodeAt(4) === 0x2d &&
    /^\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d[\d:.,Z+-]*)?)?$/.test(value)
  );
}

/** Lists outside of rows: those that share the budget. */
function countLists(value: unknown, depth: number, visits: { left: number; readonly readKeys: ReadKeys }): number {
  visits.left -= 1;
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return 0;
  if (Array.isArray(value)) return 1;
  const keys = visits.readKeys(value);
  if (isMap(value as Readonly<Record<string, unknown>>, keys)) return 1;
  let lists = 0;
  for (const key of keys) {
    if (visits.left <= 0) break;
    lists += countLists((value as Record<string, unknown>)[key], depth + 1, visits);
  }
  return lists;
}

/** Measured on a few items. */
function valuesPerItem(length: number, item: (index: number) => unknown): number {
  const visits = { left: 50_000 };
  let items = 0;
  for (const index of spread(length, 12)) {
    countValues(item(index), 0, visits);
    items += 1;
  }
  return Math.max(1, (50_000 - visits.left) / items);
}

function countValues(value: unknown, depth: number, visits: { left: number }): void {
  visits.left -= typeof value === "string" ? 1 + Math.floor(value.length / VALUE_CHARACTERS) : 1;
  if (typeof value !== "object" || value === null || depth >= MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && index < MAX_ITEMS_INSIDE_ROWS && visits.left > 0; index++) {
      countValues(value.at(index), depth + 1, visits);
    }
    return;
  }
  for (const key in value) {
    if (visits.left <= 0) return;
    countValues((value as Record<string, unknown>)[key], depth + 1, visits);
  }
}

/** `take` numbers below `count`, evenly spread, with the first and the last; all of them when they are that few. */
function* spread(count: number, take: number): Generator<number> {
  if (take >= count) {
    for (let index = 0; index < count; index++) yield index;
    return;
  }
  const step = take > 1 ? (count - 1) / (take - 1) : 0;
  for (let number = 0; number < take; number++) yield Math.floor(number * step + 1e-9);
}

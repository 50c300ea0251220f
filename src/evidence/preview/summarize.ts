import { ExactNumber } from "../../text/json.ts";
import { isMap, type ReadKeys } from "./find-rows.ts";

const MAX_DISTINCT = 12;

/** Statistics of the values at one place of a structure, over all sampled rows. */
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
  /** The distinct strings and integers; null once there are too many. */
  distinct: Set<string | number> | null = new Set();
  /** Objects whose fields were read; the others came after the budget was used up. */
  opened = 0;
  readonly fields = new Map<string, Summary>();
  /** Names of fields above the limit, which have no summary. */
  readonly otherFields = new Set<string>();
  /** Objects that are dictionaries. `items` summarizes their values. */
  maps = 0;
  items: Summary | null = null;
  itemsSeen = 0;
  itemsTotal = 0;
  minLength = Number.POSITIVE_INFINITY;
  maxLength = 0;
}

/** Default number of values to read, which covers most outputs completely. Bounds the time of a preview. */
export const SUMMARIZED_VALUES: number = 60_000;
const MIN_ROWS = 20;
/** Longer strings are not counted as distinct values: a preview would not show them, and comparing them takes as long as parsing. */
const MAX_DISTINCT_CHARACTERS = 200;
/** A long string counts as one more value for every 200 characters, because reading it takes longer. */
const VALUE_CHARACTERS = 200;
const MAX_DEPTH = 8;
const MAX_FIELDS = 300;
const MAX_ITEMS_INSIDE_ROWS = 64;

interface Walk {
  left: number;
  /** Budget of each list outside of rows. */
  readonly perList: number;
  readonly readKeys: ReadKeys;
}

/**
 * Summarizes types, null shares, ranges and small sets of values by place. Samples long lists evenly outside of rows, and 64 items of lists inside rows.
 * Each summary records how much of the total it has read, so that nothing from a sample looks exact.
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
  /** A row is always a record, never a dictionary, regardless of how many fields it has. */
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
 * Reads items with `at` instead of an index. After it has seen a list of integers and a list of decimals, the JIT compiler converts a whole list of
 * integers to decimals before an indexed read, which for millions of items takes a tenth of the parsing time.
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

/** ISO 8601 dates and times, which sort as text. The cheap checks come before the regular expression. */
function isDate(value: string): boolean {
  return (
    value.length >= 7 &&
    value.length <= 35 &&
    value.charCodeAt(4) === 0x2d &&
    /^\d{4}-\d\d(?:-\d\d(?:[T ]\d\d:\d\d[\d:.,Z+-]*)?)?$/.test(value)
  );
}

/** Counts the lists outside of rows, which share the budget. */
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

/** The average number of values per item, measured on a few items. */
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

/** `take` indexes below `count`, evenly spread, including the first and the last. */
function* spread(count: number, take: number): Generator<number> {
  if (take >= count) {
    for (let index = 0; index < count; index++) yield index;
    return;
  }
  const step = take > 1 ? (count - 1) / (take - 1) : 0;
  for (let number = 0; number < take; number++) yield Math.floor(number * step + 1e-9);
}

/** What was seen at one place of a value, over all rows that were looked at. */
export interface Summary {
  seen: number;
  nulls: number;
  booleans: number;
  integers: number;
  decimals: number;
  strings: number;
  dates: number;
  objects: number;
  arrays: number;
  min: number;
  max: number;
  firstDate: string;
  lastDate: string;
  minCharacters: number;
  maxCharacters: number;
  /** Every different string or integer, until there are too many: then null. */
  distinct: Set<string | number> | null;
  /** Objects whose fields were looked at; the others came when the walk was over its budget. */
  opened: number;
  fields: Map<string, Summary>;
  /** Names past the most that are followed. */
  otherFields: Set<string>;
  /** Of objects that are dictionaries: how many keys, and their values as `items`. */
  maps: number;
  items: Summary | null;
  itemsSeen: number;
  itemsTotal: number;
  minLength: number;
  maxLength: number;
}

export const MAX_DISTINCT = 12;

export function createSummary(): Summary {
  return {
    seen: 0,
    nulls: 0,
    booleans: 0,
    integers: 0,
    decimals: 0,
    strings: 0,
    dates: 0,
    objects: 0,
    arrays: 0,
    min: Number.POSITIVE_INFINITY,
    max: Number.NEGATIVE_INFINITY,
    firstDate: "",
    lastDate: "",
    minCharacters: Number.POSITIVE_INFINITY,
    maxCharacters: 0,
    distinct: new Set(),
    opened: 0,
    fields: new Map(),
    otherFields: new Set(),
    maps: 0,
    items: null,
    itemsSeen: 0,
    itemsTotal: 0,
    minLength: Number.POSITIVE_INFINITY,
    maxLength: 0,
  };
}

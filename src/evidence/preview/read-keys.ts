/** The keys of an object. Listing a million of them takes as long as parsing them, so for one digest each large object is listed once. */
export type ReadKeys = (value: object) => readonly string[];

const LARGE = 1000;

export function createReadKeys(): ReadKeys {
  const known = new Map<object, readonly string[]>();
  return (value) => {
    const found = known.get(value);
    if (found !== undefined) return found;
    const keys = Object.keys(value);
    if (keys.length > LARGE) known.set(value, keys);
    return keys;
  };
}

/** What JSON may look like, so that reading it takes a time that fits its size. Far more than honest data needs. */
export const jsonShapeLimits = { levels: 256, keysOfOneObject: 20_000, objectsAndArrays: 1_000_000, values: 4_000_000 } as const;

/** A place where an object is open, with the number of its keys so far; null for an array. */
type Open = { keys: number } | null;

const quote = 0x22;
const backslash = 0x5c;

/**
 * Follows JSON while its bytes arrive. `JSON.parse` needs seconds for millions of nested arrays or of keys in one object, and blocks everything else
 * meanwhile. Returns a function that gets the next bytes and returns which limit they exceed, as a sentence; null while they exceed none. It does not
 * check that the bytes are JSON.
 */
export function createJsonShape(): (bytes: Uint8Array) => string | null {
  const open: Open[] = [];
  let containers = 0;
  let values = 0;
  let isInString = false;
  let isEscaped = false;

  function readStructure(byte: number): string | null {
    if (byte === 0x5b || byte === 0x7b) {
      open.push(byte === 0x7b ? { keys: 0 } : null);
      containers += 1;
      if (open.length > jsonShapeLimits.levels) return `It is nested more than ${jsonShapeLimits.levels} levels deep.`;
      if (containers > jsonShapeLimits.objectsAndArrays)
        return `It has more than ${jsonShapeLimits.objectsAndArrays.toLocaleString("en")} objects and arrays.`;
    } else if (byte === 0x5d || byte === 0x7d) open.pop();
    else if (byte === 0x2c) {
      values += 1;
      if (values > jsonShapeLimits.values) return `It has more than ${jsonShapeLimits.values.toLocaleString("en")} values.`;
    } else if (byte === 0x3a) {
      const object = open.at(-1) ?? null;
      if (object !== null && (object.keys += 1) > jsonShapeLimits.keysOfOneObject)
        return `One object has more than ${jsonShapeLimits.keysOfOneObject.toLocaleString("en")} keys.`;
    }
    return null;
  }

  return (bytes) => {
    for (const byte of bytes) {
      if (isEscaped) isEscaped = false;
      else if (isInString) {
        if (byte === quote) isInString = false;
        else if (byte === backslash) isEscaped = true;
      } else if (byte === quote) isInString = true;
      else {
        const problem = readStructure(byte);
        if (problem !== null) return problem;
      }
    }
    return null;
  };
}

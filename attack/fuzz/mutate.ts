import * as fc from "fast-check";

/** Values that programs stumble over. */
const strange: readonly unknown[] = [
  ...[null, true, "", "\0", "\uD800", "__proto__", "constructor", "../../etc/passwd", "%00", "=1+1", "x".repeat(70_000)],
  ...[-1, -0, 0.5, 1e308, 2 ** 53, 2 ** 31, [], {}, [[]], nest(300)],
];

function nest(levels: number): unknown {
  return levels === 0 ? [] : [nest(levels - 1)];
}

/** One change of a value. `at` picks the place, modulo the number of places. */
interface Change {
  readonly at: number;
  readonly how: "replace" | "remove" | "repeat" | "wrap" | "rename";
  readonly by: unknown;
}

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom("replace", "replace", "remove", "repeat", "wrap", "rename"),
  by: fc.oneof(fc.constantFrom(...strange), fc.jsonValue({ maxDepth: 3 })),
});

export interface GenerateOptions {
  readonly seed: number;
  readonly count: number;
}

/** Valid values with one to three changes each. The same seed gives the same values. */
export function mutateValues(valid: readonly unknown[], { seed, count }: GenerateOptions): unknown[] {
  const changes = fc.array(change, { minLength: 1, maxLength: 3 });
  const mutated = fc
    .tuple(fc.nat(valid.length - 1), changes)
    .map(([index, list]) => list.reduce<unknown>(applyChange, structuredClone(valid[index])));
  return fc.sample(mutated, { seed, numRuns: count });
}

/** Valid texts or bytes with pieces that are cut, repeated or replaced. */
export function mutateBytes(valid: readonly Uint8Array[], { seed, count }: GenerateOptions): Buffer[] {
  const splice = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat(64),
    times: fc.constantFrom(0, 0, 1, 2, 1000),
    by: fc.oneof(fc.constant(null), fc.uint8Array({ maxLength: 8 })),
  });
  const mutated = fc.tuple(fc.nat(valid.length - 1), fc.array(splice, { minLength: 1, maxLength: 4 })).map(([index, splices]) =>
    splices.reduce<Buffer>((bytes, { at, length, times, by }) => {
      const start = Math.floor(at * bytes.length);
      const piece = by ?? bytes.subarray(start, start + length);
      return Buffer.concat([bytes.subarray(0, start), ...Array.from({ length: times }, () => piece), bytes.subarray(start + length)]);
    }, Buffer.from(valid[index]!)),
  );
  return fc.sample(mutated, { seed, numRuns: count });
}

interface Place {
  readonly parent: Record<string, unknown>;
  readonly key: string;
}

function applyChange(value: unknown, { at, how, by }: Change): unknown {
  const root = { value };
  const added = structuredClone(by); // the list of strange values must stay as it is
  const places = listPlaces(root);
  const { parent, key } = places[at % places.length]!;
  if (how === "replace") parent[key] = added;
  else if (how === "remove" && Array.isArray(parent)) parent.splice(Number(key), 1);
  else if (how === "remove") delete parent[key];
  else if (how === "repeat") parent[key] = Array.from({ length: 50 }, () => structuredClone(parent[key]));
  else if (how === "wrap") parent[key] = { [key]: parent[key] };
  else Object.assign(parent, { [`${key}\u200b`]: parent[key] });
  return root.value ?? null; // it may have been removed
}

function listPlaces(parent: object): Place[] {
  return Object.keys(parent).flatMap((key) => {
    const record = parent as Record<string, unknown>;
    const value = record[key];
    const inside = typeof value === "object" && value !== null ? listPlaces(value) : [];
    return [{ parent: record, key }, ...inside];
  });
}

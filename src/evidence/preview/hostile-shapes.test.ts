import { expect, test } from "vitest";
import { createEvidenceStore } from "../create-evidence-store.ts";

const face = "\u{1F600}";
const times = <Value>(count: number, make: (index: number) => Value): Value[] => Array.from({ length: count }, (_, index) => make(index));
const record = (count: number, key: (index: number) => string): Record<string, number> =>
  Object.fromEntries(times(count, (index) => [key(index), index]));

/** Outputs that leave little room in a preview, or that are hard to cut. */
const shapes: readonly (readonly [string, unknown])[] = [
  ["keys of 20,000 characters", record(50, (index) => `${"k".repeat(20_000)}${index}`)],
  ["thousands of columns", times(4, (row) => record(2000, (index) => `col_${index}_${row % 3}`))],
  ["lists 3,000 deep", JSON.parse(`${"[".repeat(3000)}${"]".repeat(3000)}`)],
  ["objects 3,000 deep", JSON.parse(`${'{"a":'.repeat(3000)}1${"}".repeat(3000)}`)],
  ["one text of a megabyte", "x".repeat(1_000_000)],
  ["one JSON text of a megabyte", JSON.stringify("x".repeat(1_000_000))],
  ["surrogate pairs", face.repeat(20_000)],
  ["rows of surrogate pairs", times(50, () => ({ [face.repeat(50)]: face.repeat(2000) }))],
  ["unpaired surrogates", "\uD800".repeat(10_000)],
  ["rows with unpaired surrogates", [{ "\uD800": "\uDC00".repeat(5000) }]],
  ["control characters, which JSON escapes to six characters", "\u0000\u0001".repeat(20_000)],
  ["quotes and backslashes", '"\\'.repeat(20_000)],
  ["NaN and infinity, as text", '[{"a": NaN, "b": -Infinity}]'],
  ["NaN and infinity, as values", times(500, () => ({ a: Number.NaN, b: Number.NEGATIVE_INFINITY, c: -0 }))],
  ["numbers of 300 digits", `[${times(2000, () => "9".repeat(300)).join(",")}]`],
  ["one number of 50,000 digits", "9".repeat(50_000)],
  [
    "rows below names that are long and need escapes",
    { ["k".repeat(5000)]: { [`a"b\\c\n${"k".repeat(3000)}`]: times(100, (i) => ({ i })) } },
  ],
  ["hundreds of lists", Object.fromEntries(times(100, (index) => [`list${index}`, times(50, (row) => ({ row, text: "t".repeat(100) }))]))],
  ["a dictionary with long keys", Object.fromEntries(times(3000, (i) => [`${"k".repeat(300)}${i}`, { v: "v".repeat(200), i }]))],
  ["an empty list", []],
];

test.each(shapes)(
  "%s: every preview is valid JSON of whole characters within its budget, with alias, size and the place of the whole output",
  (_, output) => {
    for (const tool of ["t", "n".repeat(300)]) {
      const store = createEvidenceStore();
      const { alias, bytes } = store.add({ tool, output });
      for (const maxBytes of [256, 400, 1000, undefined]) {
        const { json } = store.preview(alias, maxBytes === undefined ? {} : { maxBytes });
        expect(Buffer.byteLength(json)).toBeLessThanOrEqual(maxBytes ?? 4096);
        const read = JSON.parse(json) as Record<string, unknown>;
        expect([read["alias"], read["bytes"], String(read["note"]).includes(`in Python as ${alias}.`)]).toEqual([alias, bytes, true]);
        expect([json.isWellFormed(), /\\ud[89a-f]/i.test(json)]).toEqual([true, false]);
      }
      for (let call = 0; call < 14; call += 1) store.add({ tool, output });
      const step = store.previewStep(store.aliases());
      expect(step.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)).toBeLessThanOrEqual(24_576);
      expect(step.map(({ json }) => (JSON.parse(json) as Record<string, unknown>)["alias"])).toEqual(store.aliases());
    }
  },
);

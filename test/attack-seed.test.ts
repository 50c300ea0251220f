import { expect, test } from "vitest";
import { generateFrames } from "../attack/fuzz/frames.ts";
import { mutateBytes, mutateValues } from "../attack/fuzz/mutate.ts";

const valid = [
  { a: [1, { b: "x" }], c: "d" },
  { method: "POST", path: "/x", body: { list: [1, 2, 3] } },
];

/** Everything that the fuzzing of an attack run sends. */
function generate(seed: number): string {
  const values = JSON.stringify(mutateValues(valid, { seed, count: 500 }));
  const bytes = mutateBytes([Buffer.from("a,b\n1,2\n")], { seed, count: 100 });
  return [values, ...bytes, ...generateFrames({ seed, count: 200 })].map(String).join("\n");
}

test("a seed gives the same mutations whatever was generated before, and another seed gives others", () => {
  const first = generate(1);
  const other = generate(2);
  expect(generate(1) === first).toBe(true);
  expect(other === first).toBe(false);
});

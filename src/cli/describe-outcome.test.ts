import { expect, test } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { describeOutcome } from "./describe-outcome.ts";

test("prints long integers exactly, in JSON and in tables", () => {
  expect(describeOutcome(createOutcome({ resultJson: '{"big":1152921504606846977}' }), [])).toBe('{\n  "big": 1152921504606846977\n}\n');
  expect(describeOutcome(createOutcome({ resultJson: '[{"big":1152921504606846977}]' }), [])).toContain("\n1152921504606846977");
});

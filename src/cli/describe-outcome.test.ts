import { expect, test } from "vitest";
import { createOutcome } from "../../test/fixtures/create-outcome.ts";
import { describeOutcome } from "./describe-outcome.ts";

test("prints long integers exactly, in JSON and in tables", () => {
  expect(describeOutcome(createOutcome({ resultJson: '{"big":1152921504606846977}' }), [])).toBe('{\n  "big": 1152921504606846977\n}\n');
  expect(describeOutcome(createOutcome({ resultJson: '[{"big":1152921504606846977}]' }), [])).toContain("\n1152921504606846977");
});

test("prints diagnostics as sentences, without control characters", () => {
  const diagnostics = { implicitResult: true, showCalls: 1, killedForMemory: "\u001b[2J" };
  expect(describeOutcome(createOutcome({ diagnostics }), [])).toBe(
    'note: plt.show() shows nothing here: call save_figure(alt).\nnote: killedForMemory: "\\u001b[2J"\n',
  );
});

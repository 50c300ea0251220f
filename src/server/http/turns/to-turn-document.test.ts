import { expect, test } from "vitest";
import { eventWithOrigin } from "./to-turn-document.ts";

test("gives programs whole addresses of our own files, and leaves all others as they are", () => {
  const text = "![a](/artifacts/ab.png) [b](/data/ds_1.json) [c](/elsewhere) [d](https://example.com/artifacts/x)";
  expect(eventWithOrigin({ type: "answer-delta", text }, "http://h:1")).toEqual({
    type: "answer-delta",
    text: "![a](http://h:1/artifacts/ab.png) [b](http://h:1/data/ds_1.json) [c](/elsewhere) [d](https://example.com/artifacts/x)",
  });
  const step = { type: "step-start", step: 1, of: 2 } as const;
  expect(eventWithOrigin(step, "http://h:1")).toBe(step);
});

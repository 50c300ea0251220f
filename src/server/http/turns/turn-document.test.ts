import { expect, test } from "vitest";
import { eventWithOrigin } from "./turn-document.ts";

test("makes URLs of our own files absolute and leaves all others unchanged", () => {
  const text = "![a](/artifacts/ab.png) [b](/data/ds_1.json) [c](/elsewhere) [d](https://example.com/artifacts/x)";
  expect(eventWithOrigin({ type: "answer-delta", text }, "http://h:1")).toEqual({
    type: "answer-delta",
    text: "![a](http://h:1/artifacts/ab.png) [b](http://h:1/data/ds_1.json) [c](/elsewhere) [d](https://example.com/artifacts/x)",
  });
  const step = { type: "step-start", step: 1, of: 2 } as const;
  expect(eventWithOrigin(step, "http://h:1")).toBe(step);
});

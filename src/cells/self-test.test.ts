import { expect, test } from "vitest";
import { toChecks } from "./self-test.ts";

test("what the self-test found is a check for each name", () => {
  expect(toChecks('{"dns": {"ok": true, "detail": "refused", "more": 1}}')).toEqual([{ name: "dns", ok: true, detail: "refused" }]);
});

test.each(["[]", "null", '{"dns": null}', '{"dns": {"ok": "no", "detail": "got through"}}'])(
  "a sandbox that answers %s has failed",
  (json) => {
    expect(toChecks(json)).toEqual([{ name: "python", ok: false, detail: "the self-test gave a result that it cannot give" }]);
  },
);

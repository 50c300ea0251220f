import { expect, test } from "vitest";
import { parseSelfTestResult } from "./choose-driver.ts";

test("each entry of the self-test's result becomes one check", () => {
  expect(parseSelfTestResult('{"dns": {"ok": true, "detail": "refused", "more": 1}}')).toEqual([
    { name: "dns", ok: true, detail: "refused" },
  ]);
});

test.each(["[]", "null", '{"dns": null}', '{"dns": {"ok": "no", "detail": "got through"}}'])(
  "a sandbox that returns %s fails the self-test",
  (json) => {
    expect(parseSelfTestResult(json)).toEqual([{ name: "python", ok: false, detail: "the self-test returned a malformed result" }]);
  },
);

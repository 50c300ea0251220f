import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expandReferences } from "./expand-references.ts";

describe("expandReferences", () => {
  it("returns the original text of escaped text", () => {
    const texts = fc.array(fc.constantFrom("$", "{", "}", "${", "A", " ", "$${A}")).map((parts) => parts.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        expect(
          expandReferences(
            text.replaceAll("${", () => "$${"),
            { A: "wrong" },
          ),
        ).toEqual({
          value: text,
          references: new Map(),
          problems: [],
        });
      }),
    );
  });

  it("changes strings only, and does not expand the value of a variable again", () => {
    const document = { list: [1, null, true, { deep: "${A}" }], "${A}": "key" };
    const { value, references } = expandReferences(document, { A: "${B}", B: "no" });
    expect(value).toEqual({ list: [1, null, true, { deep: "${B}" }], "${A}": "key" });
    expect([...references]).toEqual([["list[3].deep", { variables: ["A"], written: "${A}" }]]);
  });
});

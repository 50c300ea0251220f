import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expandReferences } from "./expand-references.ts";

describe("expandReferences", () => {
  it("gives any text back that was escaped", () => {
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

  it("leaves everything that is no text as it is, and does not expand what came out of a variable", () => {
    const document = { list: [1, null, true, { deep: "${A}" }], "${A}": "key" };
    const { value, references } = expandReferences(document, { A: "${B}", B: "no" });
    expect(value).toEqual({ list: [1, null, true, { deep: "${B}" }], "${A}": "key" });
    expect([...references]).toEqual([["list[3].deep", { variables: ["A"], written: "${A}" }]]);
  });
});

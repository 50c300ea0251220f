import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findRepeatedKeys } from "./find-repeated-keys.ts";

describe("findRepeatedKeys", () => {
  it("names each key that is there twice with its path, however it is written", () => {
    const text = String.raw`{"a": [{"b": 1}, {"b": {"x:{\"": 1, "b": "b"}, "b": [], "\u0062": 0}], "a": {"c": ["a", "a"]}, "d": {"a": 1}}`;
    expect(findRepeatedKeys(text)).toEqual([
      { path: "a[1].b", problem: "is there twice." },
      { path: "a[1].b", problem: "is there twice." },
      { path: "a", problem: "is there twice." },
    ]);
  });

  it("finds nothing in what has no key twice", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(findRepeatedKeys(text)).toEqual([]);
      }),
    );
  });
});

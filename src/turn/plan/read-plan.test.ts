import { describe, expect, test } from "vitest";
import { findPlan, readPlan } from "./read-plan.ts";

describe("a plan that a model wrote", () => {
  test("has the fields that are right, and no others", () => {
    expect(readPlan({ chartIntent: "explicit", measures: ["mean"], population: " all venues ", more: 1 })).toEqual({
      chartIntent: "explicit",
      measures: ["mean"],
      population: "all venues",
    });
    expect(readPlan({ chartIntent: "EXPLICIT", measures: "mean", population: "" })).toEqual({});
    expect(readPlan({})).toEqual({});
  });

  test("is found in the text around it", () => {
    expect(findPlan('Sure!\n```json\n{"chartIntent": "none"}\n```')).toEqual({ chartIntent: "none" });
    expect(findPlan("I cannot plan.")).toBeNull();
    expect(findPlan("} {")).toBeNull();
    expect(findPlan("{not json}")).toBeNull();
  });
});

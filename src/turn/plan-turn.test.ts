import { describe, expect, test } from "vitest";
import { findPlan, planByRules, readChartIntent, readPlan } from "./plan-turn.ts";

describe("a question read by rules", () => {
  test.each([
    ["Plot the reserves of all venues.", "explicit"],
    ["Give me a chart of net flow by month", "explicit"],
    ["Could you draw this?", "explicit"],
    ["A histogram of returns, please.", "explicit"],
    ["What is the trend of reserves?", "implied"],
    ["Compare A and B.", "implied"],
    ["How much did it change by month?", "implied"],
    ["What is the mean price of A?", "none"],
    ["Give the mean, without any chart.", "none"],
    ["Don't plot anything, only the number.", "none"],
    ["How many paragraphs has it?", "none"],
  ])("%s", (question, intent) => {
    expect(readChartIntent(question)).toBe(intent);
  });

  test("says why it was read so", () => {
    expect(planByRules("Plot it.", "The planning call failed.")).toEqual({
      chartIntent: "explicit",
      measures: [],
      population: "everything that was asked about",
      source: "rules",
      because: "The planning call failed.",
    });
  });
});

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

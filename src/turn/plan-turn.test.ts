import { describe, expect, test } from "vitest";
import { findPlan, planByRules, readChartIntent, readPlan } from "./plan-turn.ts";

describe("a plan made by rules", () => {
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

  test("gives the reason for using rules", () => {
    expect(planByRules("Plot it.", "The planning call failed.")).toEqual({
      chartIntent: "explicit",
      measures: [],
      population: "everything that the question covers",
      source: "rules",
      because: "The planning call failed.",
    });
  });
});

describe("a plan written by a model", () => {
  test("keeps the valid fields only", () => {
    expect(readPlan({ chartIntent: "explicit", measures: ["mean"], population: " all venues ", more: 1 })).toEqual({
      chartIntent: "explicit",
      measures: ["mean"],
      population: "all venues",
    });
    expect(readPlan({ chartIntent: "EXPLICIT", measures: "mean", population: "" })).toEqual({});
    expect(readPlan({})).toEqual({});
  });

  test("is found inside other text", () => {
    expect(findPlan('Sure!\n```json\n{"chartIntent": "none"}\n```')).toEqual({ chartIntent: "none" });
    expect(findPlan("I cannot plan.")).toBeNull();
    expect(findPlan("} {")).toBeNull();
    expect(findPlan("{not json}")).toBeNull();
  });
});

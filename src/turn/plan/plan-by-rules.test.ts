import { describe, expect, test } from "vitest";
import { planByRules, readChartIntent } from "./plan-by-rules.ts";

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

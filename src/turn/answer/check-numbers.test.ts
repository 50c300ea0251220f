import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createKnownNumbers, findUnknownNumbers, readNumbers } from "./check-numbers.ts";

function unknownIn(answer: string, ...shown: string[]): string[] {
  return findUnknownNumbers(answer, () => {
    const known = createKnownNumbers();
    for (const text of shown) known.addText(text);
    return known;
  });
}

const result =
  '{"start":812345.67,"end":790100.12,"share":0.0274,"byVenue":[{"venue":"Harbour","btc":35000},{"venue":"Quarry","btc":-63680.4}]}';

describe("a number of an answer", () => {
  test.each(["81234,5", "1.081.234,5"])("is accepted when a result has it with a decimal comma: %s", (shown) => {
    const exact = shown.replaceAll(".", "").replace(",", ".");
    expect(unknownIn(`It is ${exact} now.`, shown)).toEqual([]);
  });

  test.each([
    "Reserves fell from 812,345.67 to 790,100.12.",
    "Reserves fell from 812,346 to 790,100, about 812 thousand to 0.79M.",
    "812.345,67 und 790.100",
    "From 812 346 to 790'100.",
    "A share of 2.74 %, or 2.7 percent, or 3 %, or 274 bp.",
    "Quarry left with 63,680 (−63.7k).",
    "It fell by 22,246, which is 2.7 %.",
    "Harbour has 35,000 BTC, 4.3 % of the first total.",
    "Both together have 98,680 BTC.",
    "On 2025-03-03 at 12:30, on 3 March 2025, in March 2025, in 2024/25 and in 2023–2025; 03/04/2025.",
    "1. First\n2. Second\n\n123. Third\n## 4.5.6 Title",
    "Figure 123, Chart 456 and Table 789 of Python 3.13.2; see [17] and #4711.",
    "See `x = 471123` and [here](https://example.org/471123/a) and https://example.org/471123.",
    "```\n471123\n```\nDone.",
    "result_471123, Q1, H2, 10Y, GPT4711",
    "40 venues, 12 months, 99 days and 100 of them.",
    "Nothing: 0, 0.0 and 0 %.",
  ])("is accepted when it can be right: %s", (answer) => {
    expect(unknownIn(answer, result)).toEqual([]);
  });

  test.each([
    ["Reserves are 999,123 BTC.", ["999,123"]],
    ["Reserves rose by 17.77 %.", ["17.77 %"]],
    ["They are worth 5.123 billion, or $4,711,222.", ["5.123 billion", "4,711,222"]],
    ["Harbour has 35,417 BTC, and 35,417 it keeps.", ["35,417"]],
    ["| venue | btc |\n|---|---|\n| Harbour | 35,000 |\n| Quarry | 71,239 |", ["71,239"]],
    ["- 4,711 was the least", ["4,711"]],
  ])("that appears in no known text is found: %s", (answer, unknown) => {
    expect(unknownIn(answer, result)).toEqual(unknown);
  });

  test("may come from the question, or from one arithmetic step on other numbers of the answer", () => {
    expect(unknownIn("Above 4,711 there are 5,000.", "Which are above 4711?", "5000 rows")).toEqual([]);
    expect(unknownIn("It went from 812,346 to 790,100; at 63,514.76 USD that is 50.2 billion USD.", result, "close 63514.76")).toEqual([]);
  });

  test("is accepted in every common notation of a known number", () => {
    const styles: ((value: number) => string)[] = [
      (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 }),
      (value) => value.toLocaleString("de-DE", { maximumFractionDigits: 3 }),
      (value) => value.toLocaleString("fr-FR", { maximumFractionDigits: 1 }),
      (value) => value.toFixed(0),
      (value) => value.toFixed(1),
      (value) => `${(value * 100).toFixed(1)} %`,
      (value) => value.toPrecision(4),
      (value) => value.toExponential(2),
      (value) => `${(value / 1e3).toFixed(1)}k`,
      (value) => `${(value / 1e6).toFixed(2)} million`,
      (value) => `$${(value / 1e9).toFixed(2)}bn`,
      (value) => `${Math.trunc(value)}`,
      (value) => `${Math.round(value / 1000) * 1000}`,
    ];
    const number = fc.double({ min: 0.001, max: 1e11, noNaN: true });
    fc.assert(
      fc.property(fc.array(number, { minLength: 1, maxLength: 30 }), fc.nat(), fc.boolean(), (values, style, isNegative) => {
        const shown = JSON.stringify(values.map((value) => (isNegative ? -value : value)));
        const answer = values.map((value, at) => `It is ${styles[(style + at) % styles.length]!(value)} BTC.`).join("\n");
        expect(unknownIn(answer, shown)).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

describe("reading numbers", () => {
  test("reads both meanings of a point and a comma, and applies units", () => {
    expect(readNumbers("1,234 and 12.5k")).toEqual([
      {
        text: "1,234",
        values: [
          { value: 1.234, unit: 0.001 },
          { value: 1234, unit: 1 },
        ],
      },
      {
        text: "12.5k",
        values: [
          { value: 12.5, unit: 0.1 },
          { value: 12_500, unit: 100 },
        ],
      },
    ]);
  });

  test("ignores names, lists of digits and versions", () => {
    expect(readNumbers("Q1 result_2 v1.2.3 1,2,3,4 5th 3D")).toEqual([]);
  });
});

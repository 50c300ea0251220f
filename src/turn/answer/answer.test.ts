import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ArtifactEnvelope } from "../../protocol/artifact.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import { claimsMissingFigure, createAnswerChecker } from "./answer-checker.ts";
import { createKnownNumbers, findUnknownNumbers } from "./check-numbers.ts";
import { findMissingSentences, labelArtifacts } from "./synthesize.ts";

const hash = "a".repeat(64);
const image: ArtifactEnvelope = {
  schemaVersion: 1,
  kind: "image",
  url: "file:///a.png",
  alt: "Reserves by day",
  title: "Reserves",
  contentHash: hash,
  bytes: 10,
  width: 10,
  height: 10,
};
const chart: ArtifactEnvelope = {
  schemaVersion: 1,
  kind: "chart",
  url: "file:///b.json",
  spec: { type: "bar", xKey: "month", series: [{ key: "flow" }] },
  data: [],
  contentHash: "b".repeat(64),
  bytes: 70,
};

describe("a statement about a figure", () => {
  test.each([
    "The chart below shows the prices.",
    "See the attached figure.",
    "As shown in the plot, reserves fell.",
    "I have drawn a graph of it.",
    "A visualization was created.",
    "The chart below shows that reserves did not fall.",
    "Reserves did not fall, as the figure shows.",
    "There is no doubt: see the plot.",
    "There is no doubt the chart shows growth.",
    "No venue left as the chart shows.",
    "No chart was drawn for B, but the chart below shows A.",
    "As could be expected, the graph shows a fall that would not last.",
    "The figures below show the reserves.",
    "The figure shows the reserves by day.",
    "A figure was created.",
    "I have drawn a figure of it.",
    "As seen in the accompanying image, it fell.",
    "The chart below is not surprising.",
  ])("is removed when there is no figure: %s", (sentence) => {
    expect(claimsMissingFigure(sentence, [])).toBe(true);
    expect(claimsMissingFigure(sentence, [image])).toBe(false);
  });

  test.each([
    "No chart could be rendered.",
    "The figure is missing because Python failed.",
    "The chart wasn't drawn.",
    "The figures for 2024 are in the table.",
    "A chart would show this better.",
    "The chart that was asked for could not be shown.",
    "The chart below was not rendered.",
    "I could not draw the requested line chart, so see the table below.",
    "I was unable to render the figure; see the table above.",
    "The latest figures show a rise.",
    "The figure is 3 % above last year's.",
    "At present the figure is 35,000.",
    "The overall picture shows a decline.",
    "Harbour is included in the figure of 35,000.",
    "No figure is shown below.",
    "The second figure 35 % higher is that of B.",
    "Figure 1 could not be drawn.",
    "Reserves fell by 3 %.",
  ])("is kept: %s", (sentence) => {
    expect(claimsMissingFigure(sentence, [])).toBe(false);
  });

  test("is removed when its number is above the last figure", () => {
    expect(claimsMissingFigure("Figure 3 has the flow.", [image, chart])).toBe(true);
    expect(claimsMissingFigure("Figure 2 does not show the flow.", [image])).toBe(true);
    expect(claimsMissingFigure("Figure 1 has the flow.", [])).toBe(true);
    expect(claimsMissingFigure("Figure 1 and Chart 1 have it.", [image, chart])).toBe(false);
    expect(claimsMissingFigure("Figure 1 has it.", [chart])).toBe(false);
    expect(claimsMissingFigure("Chart 1 has it.", [image])).toBe(false);
  });
});

describe("the answer checker", () => {
  test("returns the same text however the stream is split", () => {
    const text =
      "The mean is 3. The chart below shows it.\n\n```\nThe chart shows ![x](https://evil)\n```\n| chart shows | 1 |\n![x](https://evil)";
    const whole = createAnswerChecker([]);
    const expected = whole.push(text) + whole.end();
    expect(expected).toBe("The mean is 3. \n\n```\nThe chart shows ![x](https://evil)\n```\n| chart shows | 1 |\nx");
    expect(whole.removedClaims).toBe(1);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 8 }), (cuts) => {
        const checker = createAnswerChecker([]);
        const at = [0, ...cuts.sort((a, b) => a - b), text.length];
        const pieces = at.slice(1).map((end, index) => checker.push(text.slice(at[index], end)));
        expect(pieces.join("") + checker.end()).toBe(expected);
      }),
    );
  });
});

describe("an answer that is crafted to be slow to check", () => {
  /** Each of these once took minutes. The timeout is that of any test. */
  test.each([
    "![",
    "![a](",
    "![a][",
    "![\\",
    "<img",
    "<im<img>g>",
    "](",
    "```",
    "\n",
    "1 ",
    "1 234",
    "1,",
    ". ",
    "figure 1 ",
    "chart ",
    "chart",
    "not ",
    "no chart not ",
    "2024-",
    "> ",
  ])("of 100,000 characters, repeating %j, is checked in time", (piece) => {
    const text = piece.repeat(100_000 / piece.length);
    const checker = createAnswerChecker([image]);
    const answer = checker.push(text) + checker.end();
    findUnknownNumbers(answer, () => createKnownNumbers());
    expect(findMissingSentences(answer, { artifacts: [image], gaps: [] }).length).toBeLessThanOrEqual(1);
  });
});

describe("findMissingSentences", () => {
  const gap: Gap = { code: "server_unavailable", severity: "minor", detail: "The server market could not be used: connection refused" };

  test("returns artifacts by label and gaps by sentence", () => {
    expect(findMissingSentences("Reserves fell.", { artifacts: [chart], gaps: [gap] })).toEqual([
      "Chart 1: bar chart of flow.",
      "The server market could not be used: connection refused.",
    ]);
  });

  test("ignores artifacts mentioned by label or URL, and gaps mentioned with their sentence, whatever the Markdown", () => {
    const answer = "See **Figure 1**.\n\n> *the server `market`\ncould not be used: Connection refused.*";
    expect(findMissingSentences(answer, { artifacts: [image], gaps: [gap] })).toEqual([]);
    expect(findMissingSentences("![Reserves](file:///a.png)", { artifacts: [image], gaps: [] })).toEqual([]);
    expect(findMissingSentences("Figure 10 has it.", { artifacts: [image], gaps: [] })).toEqual(["Figure 1: Reserves."]);
  });

  test("does not accept the code of a gap, a similar or opposite sentence, or only the title of an artifact", () => {
    const detail = "The server market could not be used: connection refused.";
    const sounding = [
      "There was a server_unavailable.",
      "The server market could be used: the connection was not refused.",
      "The market server refused its connection, and could not be used.",
    ];
    for (const answer of sounding) expect(findMissingSentences(answer, { artifacts: [], gaps: [gap] })).toEqual([detail]);
    expect(findMissingSentences("Reserves fell.", { artifacts: [image], gaps: [] })).toEqual(["Figure 1: Reserves."]);
  });

  test("counts figures and charts separately in labels", () => {
    expect(labelArtifacts([image, chart, image]).map(({ label }) => label)).toEqual(["Figure 1", "Chart 1", "Figure 2"]);
  });
});

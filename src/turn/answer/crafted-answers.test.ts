import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

/** Repeated, each is slow for a parser or a regular expression that is not linear. */
const pieces = [
  ...[
    "[\n",
    "[a](",
    "[a](b) ",
    "![a](b) ",
    "[a]: b\n",
    "[a][b]",
    "[^a]",
    "]]",
    "*a ",
    "a**",
    "*_",
    "~~a",
    "|",
    "|a|\n|-|\n",
    "`",
    "`a",
    "<",
    "<a ",
    "x <!--",
    "&amp;",
  ],
  ...[
    "> ",
    "> - ",
    "- ",
    "1. ",
    "\n> ",
    "\n- a",
    "# a\n",
    "a\n=\n",
    "[x](y)\n\n",
    "<div>\n\n",
    "x\n```\n",
    "https://a@b ",
    " ",
    "\n",
    "a",
    "No chart. ",
    "chart ",
    "not ",
  ],
];

/** Measures in a child process, which ends also when a text takes forever. Prints the processor time by text and size. */
const program = `
  const { createAnswerChecker } = await import(${JSON.stringify(new URL("answer-checker.ts", import.meta.url).href)});
  const millisecondsFor = (piece, characters) => {
    const text = piece.repeat(characters / piece.length);
    const before = process.cpuUsage();
    const checker = createAnswerChecker([]);
    for (let at = 0; at < text.length; at += 1000) checker.push(text.slice(at, at + 1000));
    checker.end();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  for (const piece of ${JSON.stringify(pieces)}) console.log(JSON.stringify([piece, millisecondsFor(piece, 125_000), millisecondsFor(piece, 1_000_000)]));`;

test("crafted answers of a megabyte take time in proportion to their length", { timeout: 300_000 }, () => {
  const child = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8", timeout: 280_000 });
  const measured = child.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as [string, number, number]);
  expect(
    measured.map(([piece]) => piece),
    child.stderr,
  ).toEqual(pieces);
  // Eight times the length takes 64 times as long when it is quadratic. Short times are mostly noise.
  expect(measured.filter(([, short, long]) => long > 24 * Math.max(short, 50))).toEqual([]);
});

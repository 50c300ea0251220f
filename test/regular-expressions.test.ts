import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { check } from "recheck";
import { expect, test } from "vitest";
import { findRegularExpressions, type FoundRegularExpression } from "./find-regular-expressions.ts";

const root = path.join(import.meta.dirname, "..");

/**
 * No time limits, so that the verdict is the same on a busy machine. Smaller generations than by default keep the search for a slow text, which is used where
 * the exact analysis is not possible, below a few seconds.
 */
const analysis = {
  timeout: null,
  attackTimeout: null,
  incubationTimeout: null,
  seedingTimeout: null,
  randomSeed: 0,
  maxInitialGenerationSize: 100,
  maxGenerationSize: 50,
  mutationSize: 20,
  crossoverSize: 10,
};

/** Says why a regular expression can take more than linear time, with a text that shows it; null if it cannot. */
async function findSlowness({ source, flags }: Omit<FoundRegularExpression, "line">): Promise<string | null> {
  if (source === null) return "is not built from constants and RegExp.escape, so it cannot be checked";
  if (!/[*+{]/.test(source)) return null; // without repetition, the time depends on the pattern only
  const found = await check(source, flags, analysis);
  if (found.status === "safe") return null;
  if (found.status === "unknown") return `/${source}/${flags} could not be checked: ${found.error.kind}`;
  return `/${source}/${flags} is not linear (${found.complexity.summary}), for example for ${found.attack.pattern}`;
}

test("every regular expression of the server and of the page takes linear time for any text", { timeout: 900_000 }, async () => {
  const files = globSync("{src,web}/**/*.{ts,tsx}", { cwd: root }).filter((file) => !/\.test\.ts$|\/fixtures\//.test(file));
  const waiting = files.flatMap((file) =>
    findRegularExpressions(file, readFileSync(path.join(root, file), "utf8")).map((found) => ({
      place: `${file}:${found.line}`,
      ...found,
    })),
  );
  expect(waiting.length).toBeGreaterThan(300);
  const slow: string[] = [];
  const checkNext = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const why = await findSlowness(next);
      if (why !== null) slow.push(`${next.place} ${why}`);
    }
  };
  await Promise.all([checkNext(), checkNext()]);
  expect(slow.toSorted()).toEqual([]);
});

test.each([
  [String.raw`const planted = /(a+)+$/;`, "exponential"],
  [String.raw`text.replaceAll(/\s+$/g, "")`, "2nd degree polynomial"],
  [String.raw`const END = "\\s*$"; const planted = new RegExp(${"`x${END}|${END}`"}, "i");`, "2nd degree polynomial"],
  [String.raw`const ends = ["[a-z]+", String.raw${"`\\d*!`"}].join("|"); export const planted = RegExp(ends);`, "2nd degree polynomial"],
  [String.raw`const form = /\[[^\]]*\]/; const every = new RegExp(form, "g");`, "2nd degree polynomial"],
  ["const planted = (name: string) => new RegExp(`${name}+`);", "cannot be checked"],
])("the check finds %s", async (text, why) => {
  const verdicts = await Promise.all(findRegularExpressions("planted.ts", text).map(findSlowness));
  expect(verdicts.at(-1)).toContain(why);
});

test("the check resolves constants and escaped text", async () => {
  const text = [
    "const DAY = String.raw`\\d{2}`;",
    "const date = new RegExp(`^${DAY}-${DAY}$`, 'i');",
    "const named = (name: string, names: string[]) => [new RegExp(`\\\\b${RegExp.escape(name)}\\\\b`), new RegExp(['a', ...names.map(RegExp.escape)].join('|'))];",
  ].join("\n");
  const found = findRegularExpressions("planted.ts", text);
  expect(found.map(({ line, source, flags }) => `${line} /${source}/${flags}`)).toEqual([
    String.raw`2 /^\d{2}-\d{2}$/i`,
    String.raw`3 /\bx\b/`,
    "3 /a|x/",
  ]);
  expect(await Promise.all(found.map(findSlowness))).toEqual([null, null, null]);
});

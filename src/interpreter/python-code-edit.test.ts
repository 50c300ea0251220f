import { expect, test } from "vitest";
import { applyEdits } from "./python-code-edit.ts";

const code = "a = 1\nb = a + 1\nc = b + 1\nprint(c)";

test("edits apply one after the other: a later one matches the text that an earlier one wrote, and not the text that it replaced", () => {
  const edits = [
    { oldText: "a = 1", newText: "start = 10" },
    { oldText: "= a +", newText: "= start +" },
    { oldText: "start = 10", newText: "start = 20" },
  ];
  expect(applyEdits(code, edits)).toEqual({ ok: true, code: "start = 20\nb = start + 1\nc = b + 1\nprint(c)" });
  expect(applyEdits(code, [edits[0]!, { oldText: "a = 1\n", newText: "" }])).toEqual({
    ok: false,
    index: 1,
    problem: "not_found",
    count: 0,
    nearest: "1: start = 10\n2: b = a + 1\n3: c = b + 1\n4: print(c)",
  });
});

test("of two overlapping edits, the second is refused because its text no longer exists", () => {
  const overlapping = [
    { oldText: "b = a + 1", newText: "b = 5" },
    { oldText: "+ 1\nc", newText: "+ 2\nc" },
  ];
  expect(applyEdits(code, overlapping)).toEqual({
    ok: false,
    index: 1,
    problem: "not_found",
    count: 0,
    nearest: "2: b = 5\n3: c = b + 1\n4: print(c)",
  });
});

test("all lines with an ambiguous text are shown, also where matches overlap", () => {
  const far = `x = 1\n${"y = 2\n".repeat(50)}x = 1`;
  const ambiguous = { ok: false, index: 0, problem: "ambiguous" };
  expect(applyEdits(far, [{ oldText: "x = 1", newText: "" }])).toEqual({ ...ambiguous, count: 2, nearest: "1: x = 1\n52: x = 1" });
  expect(applyEdits("aaa", [{ oldText: "aa", newText: "" }])).toEqual({ ...ambiguous, count: 2, nearest: "1: aaa" });
  const many = Array.from({ length: 20 }, (_, index) => `${index + 2}: y = 2`);
  expect(applyEdits(far, [{ oldText: "y = 2", newText: "" }])).toEqual({ ...ambiguous, count: 50, nearest: [...many, "…"].join("\n") });
});

test("the nearest lines are those with the most words in common, and long lines are clipped", () => {
  const long = `one = 1\ntwo = ${"2 + ".repeat(100)}two\nthree = 3`;
  expect(applyEdits(long, [{ oldText: "two = two + 2", newText: "" }])).toEqual({
    ok: false,
    index: 0,
    problem: "not_found",
    count: 0,
    nearest: `1: one = 1\n2: ${`two = ${"2 + ".repeat(100)}`.slice(0, 200)}… [+209 characters]\n3: three = 3`,
  });
});

test("replacement patterns such as $& are plain text", () => {
  expect(applyEdits("x = 1", [{ oldText: "1", newText: "'$& $1 $$'" }])).toEqual({ ok: true, code: "x = '$& $1 $$'" });
});

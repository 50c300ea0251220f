import { expect, test } from "vitest";
import { describeToday } from "./turn-prompts.ts";

test("the current date depends on the time zone", () => {
  const now = new Date("2026-12-31T23:30:00Z");
  expect(describeToday(now, "UTC")).toBe("Today is Thursday, 2026-12-31 (time zone UTC).");
  expect(describeToday(now, "Pacific/Auckland")).toBe("Today is Friday, 2027-01-01 (time zone Pacific/Auckland).");
});

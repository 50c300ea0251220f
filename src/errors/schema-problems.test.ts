import { expect, it } from "vitest";
import { z } from "zod";
import { describeZodIssues } from "./schema-problems.ts";

it("converts a schema once, even for many unknown fields", () => {
  const inner = z.strictObject({ limit: z.int().optional() });
  let conversions = 0;
  inner._zod.toJSONSchema = () => {
    conversions += 1;
    return { type: "object", properties: { limit: { type: "integer" } } };
  };
  const schema = z.strictObject({ first: inner.optional(), second: inner.optional() });
  const value = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`unknown${index}`, index]));
  const problems = describeZodIssues({
    schema,
    value: { ...value, limt: 1 },
    issues: schema.safeParse({ ...value, limt: 1 }).error!.issues,
  });
  expect(problems).toHaveLength(51);
  expect(problems.at(-1)?.problem).toBe('is not a known field. Did you mean "first.limit"?');
  expect(conversions).toBe(1);
});

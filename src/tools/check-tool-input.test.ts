import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { envelopeSchema, type Envelope } from "../errors/envelope.ts";
import { assignNames, type CatalogTool } from "./assign-names.ts";
import { createInputChecker } from "./check-tool-input.ts";
import type { JsonSchema } from "./contract.ts";
import { sampleTool } from "./fixtures/sample-tools.ts";

const checker = createInputChecker({ timeoutMs: 20_000 });
afterAll(() => checker.close());

function toolWith(inputSchema: JsonSchema): CatalogTool {
  return assignNames([sampleTool({ inputSchema })]).tools[0]!;
}

const price = toolWith({
  type: "object",
  properties: {
    symbol: { type: "string", minLength: 1 },
    days: { type: "integer", minimum: 1, maximum: 365, default: 30 },
    kind: { enum: ["open", "close"] },
    note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }] },
  },
  required: ["symbol"],
  additionalProperties: false,
});

async function envelopeOf(tool: CatalogTool, args: unknown): Promise<Envelope> {
  const verdict = await checker.check({ tool, args });
  if (verdict.ok) throw new Error("The call was accepted.");
  expect(envelopeSchema.parse(verdict.envelope)).toEqual(verdict.envelope);
  return verdict.envelope;
}

function refusal(facts: Partial<Envelope>): unknown {
  return {
    error_kind: "mcp_input_validation",
    tool: "get_price",
    details: [],
    hints: [],
    examples: [],
    retryable: false,
    _envelope_version: 1,
    ...facts,
  };
}

function detail(error_code: string, path: string, issue: string, received_type: string): Envelope["details"][number] {
  return { path, issue, received_type, error_code };
}

describe("checkToolInput", () => {
  it("accepts what the schema accepts", async () => {
    const args = { symbol: "AAPL", days: 5, kind: "open", note: null };
    expect(await checker.check({ tool: price, args })).toEqual({ ok: true, args, warnings: [] });
  });

  it("reports a missing field", async () => {
    expect(await envelopeOf(price, { days: 5 })).toEqual(
      refusal({
        error_code: "SCHEMA_REQUIRED",
        summary: "The tool was not called. Required field missing: 'symbol'.",
        details: [detail("SCHEMA_REQUIRED", "symbol", "Required field missing: 'symbol'.", "missing")],
        hints: ["Required field missing: 'symbol'."],
        examples: [{ days: 5, symbol: "text" }],
      }),
    );
  });

  it("reports an unknown field with the one that was meant", async () => {
    expect(await envelopeOf(price, { symbol: "AAPL", dayz: 5 })).toEqual(
      refusal({
        error_code: "SCHEMA_ADDITIONAL_PROPERTIES",
        summary: "The tool was not called. Unknown field 'dayz'.",
        details: [detail("SCHEMA_ADDITIONAL_PROPERTIES", "dayz", "Unknown field 'dayz'.", "number")],
        hints: ["Unknown field 'dayz'.", "Did you mean 'days'?", "The call has these fields: symbol, days, kind, note."],
        examples: [{ symbol: "AAPL", days: 5 }],
      }),
    );
  });

  it("reports different problems under one code, each with its own, and one call that would be accepted", async () => {
    expect(await envelopeOf(price, { symbol: 7, days: "30", kind: "Close ", note: "too long" })).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: "The tool was not called: 4 problems.",
        details: [
          detail("SCHEMA_TYPE_MISMATCH", "symbol", "symbol must be a string, not 7.", "number"),
          detail("SCHEMA_TYPE_MISMATCH", "days", 'days must be an integer, not "30".', "string"),
          detail("SCHEMA_ENUM_MISMATCH", "kind", 'kind must be one of "open", "close", not "Close ".', "string"),
          detail("SCHEMA_MAX_LENGTH", "note", "note is longer than 5 characters.", "string"),
        ],
        hints: ["Did you mean 'close'?"],
        examples: [{ symbol: "7", days: 30, kind: "close", note: "text" }],
      }),
    );
  });

  it("says of alternatives that are types what they are", async () => {
    const tool = toolWith({ type: "object", properties: { at: { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }] } } });
    expect(await envelopeOf(tool, { at: [1] })).toEqual(
      refusal({
        error_code: "SCHEMA_TYPE_MISMATCH",
        summary: "The tool was not called. at must be a string, an integer or null, not an array.",
        details: [detail("SCHEMA_TYPE_MISMATCH", "at", "at must be a string, an integer or null, not an array.", "array")],
        examples: [{ at: "text" }],
      }),
    );
  });

  it("follows references, into lists, as pydantic writes them", async () => {
    const tool = toolWith({
      $defs: {
        Filter: {
          type: "object",
          properties: { field: { type: "string" }, values: { type: "array", items: { type: "string" } } },
          required: ["field", "values"],
        },
      },
      type: "object",
      properties: { filters: { anyOf: [{ type: "array", items: { $ref: "#/$defs/Filter" } }, { type: "null" }], default: null } },
    });
    expect(await envelopeOf(tool, { filters: [{ field: "state", values: ["on", 3] }, { field: "name" }] })).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: "The tool was not called: 2 problems.",
        details: [
          detail("SCHEMA_TYPE_MISMATCH", "filters[0].values[1]", "filters[0].values[1] must be a string, not 3.", "number"),
          detail("SCHEMA_REQUIRED", "filters[1].values", "Required field missing: 'values'.", "missing"),
        ],
        hints: ["Required field missing: 'values'."],
        examples: [
          {
            filters: [
              { field: "state", values: ["on", "3"] },
              { field: "name", values: [] },
            ],
          },
        ],
      }),
    );
  });

  it.each([
    ["SCHEMA_CONST_MISMATCH", { const: "v1" }, "v2", 'x must be "v1", not "v2".', "v1"],
    ["SCHEMA_MAX_ITEMS", { type: "array", maxItems: 1 }, [1, 2], "x has more than 1 items.", [1]],
    ["SCHEMA_MIN_ITEMS", { type: "array", minItems: 1, items: { type: "string" } }, [], "x has fewer than 1 items.", ["text"]],
    ["SCHEMA_UNIQUE_ITEMS", { type: "array", uniqueItems: true }, [1, 2, 1], "x has equal items: 0 and 2.", null],
    ["SCHEMA_MIN_LENGTH", { type: "string", minLength: 3 }, "a", "x is shorter than 3 characters.", "text"],
    ["SCHEMA_MAXIMUM", { type: "number", maximum: 5 }, 6, "x must be at most 5, not 6.", 1],
    ["SCHEMA_MINIMUM", { type: "number", exclusiveMinimum: 5 }, 5, "x must be more than 5, not 5.", 6],
    ["SCHEMA_MULTIPLE_OF", { type: "integer", multipleOf: 5, default: 10 }, 6, "x must be a multiple of 5, not 6.", 10],
    [
      "SCHEMA_PATTERN_MISMATCH",
      { type: "string", pattern: "^B0", examples: ["B07"] },
      "A",
      'x must fit the pattern "^B0", not "A".',
      "B07",
    ],
    [
      "SCHEMA_PATTERN_MISMATCH",
      { type: "string", pattern: String.raw`^\d{4}-\d{2}-\d{2}$` },
      "today",
      String.raw`x must fit the pattern "^\\d{4}-\\d{2}-\\d{2}$", not "today".`,
      "2026-01-31",
    ],
    ["SCHEMA_FORMAT_INVALID", { type: "string", format: "date" }, "today", 'x must be of the format "date", not "today".', "2026-01-31"],
    ["SCHEMA_ONE_OF_FAILED", { oneOf: [{ type: "integer" }, { minimum: 2 }] }, 3, "x fits more than one of its 2 alternatives.", 1],
    ["SCHEMA_VALIDATION_FAILED", { not: { type: "string" } }, "a", 'x does not fit the schema\'s "not".', null],
  ])("has the code %s", async (code, schema, value, issue, corrected) => {
    const envelope = await envelopeOf(toolWith({ type: "object", properties: { x: schema } }), { x: value });
    expect(envelope).toEqual(
      refusal({
        error_code: code,
        summary: `The tool was not called. ${issue}`,
        details: [detail(code, "x", issue, Array.isArray(value) ? "array" : typeof value)],
        examples: corrected === null ? [] : [{ x: corrected }],
      }),
    );
  });

  it("says what alternatives wanted", async () => {
    const tool = toolWith({
      type: "object",
      properties: {
        by: {
          oneOf: [
            { type: "object", required: ["id"] },
            { type: "object", required: ["name"] },
          ],
        },
      },
    });
    expect(await envelopeOf(tool, { by: {} })).toEqual(
      refusal({
        error_code: "SCHEMA_ONE_OF_FAILED",
        summary: "The tool was not called. by fits none of its 2 alternatives.",
        details: [detail("SCHEMA_ONE_OF_FAILED", "by", "by fits none of its 2 alternatives.", "object")],
        hints: ["One alternative says: Required field missing: 'id'.", "One alternative says: Required field missing: 'name'."],
        examples: [{ by: { id: "text" } }],
      }),
    );
  });

  it("refuses arguments that are no object", async () => {
    expect(await envelopeOf(price, ["AAPL"])).toEqual(
      refusal({
        error_code: "SCHEMA_TYPE_MISMATCH",
        summary: "The tool was not called. The call must be an object of arguments by name, not an array.",
        details: [detail("SCHEMA_TYPE_MISMATCH", "", "The call must be an object of arguments by name, not an array.", "array")],
      }),
    );
  });

  it("counts what the session adds as given where the tool knows it, and never shows it", async () => {
    const tool = toolWith({
      type: "object",
      properties: { profile: { type: "string" }, days: { type: "integer" } },
      required: ["profile", "days"],
      additionalProperties: false,
    });
    const extraArguments = { profile: "secret-profile", region: "EU" };
    expect(await checker.check({ tool, args: { days: 3, profile: "mine" }, extraArguments })).toEqual({
      ok: true,
      args: { days: 3, profile: "secret-profile" },
      warnings: ["profile is set by the session; the value in the call was not used."],
    });
    const refused = await checker.check({ tool, args: {}, extraArguments });
    expect(refused).toMatchObject({ ok: false, envelope: { error_code: "SCHEMA_REQUIRED", details: [{ path: "days" }] } });
    expect(JSON.stringify(refused)).not.toContain("secret-profile");
  });
});

describe("schemas of strangers", () => {
  const nested = (depth: number): JsonSchema => (depth === 0 ? { type: "string" } : { properties: { a: nested(depth - 1) } });
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic["not"] = cyclic;

  it.each<[string, JsonSchema, string]>([
    ["with an unknown type", { type: "strin" }, "type must be JSONType or JSONType[]: strin"],
    ["with a remote reference", { $ref: "https://example.test/x.json" }, "can't resolve reference https://example.test/x.json from id #"],
    ["with a pattern that is none", { properties: { x: { pattern: "(" } } }, "Invalid regular expression: /(/u: Unterminated group"],
    ["that is asynchronous", { $async: true, type: "object", required: ["y"] }, "it is asynchronous"],
    ["of 10 MB", { enum: Array.from({ length: 60_000 }, (_, index) => `${index}`.padEnd(200)) }, "it is too large"],
    ["nested very deeply", nested(5_000), "it is too large"],
    ["that contains itself", cyclic, "it is too large"],
    ["that never ends", { anyOf: [{ $ref: "#" }, { $ref: "#" }] }, "Maximum call stack size exceeded"],
  ])("%s are left to the server, with a warning", async (_, schema, reason) => {
    const args = { x: "value" };
    expect(await checker.check({ tool: toolWith(schema), args })).toEqual({
      ok: true,
      args,
      warnings: [`The arguments of get_price were not checked before the call: its schema cannot be used here (${reason}).`],
    });
  });

  it.each<[string, JsonSchema, unknown]>([
    ["a pattern that backtracks for ever", { properties: { x: { pattern: "^(a+)+$" } } }, `${"a".repeat(60)}!`],
    [
      "references that double at each step",
      Object.assign(
        { $ref: "#/$defs/d0" },
        {
          $defs: Object.fromEntries(
            Array.from({ length: 40 }, (_, i) => [
              `d${i}`,
              i === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
            ]),
          ),
        },
      ),
      "x",
    ],
  ])("do not stop the host: %s", async (_, schema, x) => {
    const own = createInputChecker({ timeoutMs: 1_000 });
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 10);
    const tool = toolWith({ type: "object", ...schema });
    const verdict = await own.check({ tool, args: { x } });
    clearInterval(timer);
    expect(verdict).toMatchObject({ ok: true, warnings: [expect.stringContaining("checking takes longer than 1 s")] });
    expect(ticks).toBeGreaterThan(1);
    expect(await own.check({ tool: price, args: { symbol: "A" } })).toMatchObject({ ok: true, warnings: [] });
    expect(await own.check({ tool: toolWith({ properties: { x: { pattern: "^b" } } }), args: { x } })).toMatchObject({ ok: false });
    await own.close();
  });

  it("get no example where it would be without end, and the envelope all the same", async () => {
    const names = Array.from({ length: 300 }, (_, index) => `p${index}`);
    const endless = { type: "object", properties: Object.fromEntries(names.map((name) => [name, { $ref: "#" }])), required: names };
    const envelope = await envelopeOf(toolWith(endless), {});
    expect(envelope).toMatchObject({ error_code: "SCHEMA_REQUIRED", examples: [] });
    expect(envelope.details).toHaveLength(40);
  });

  it("of older dialects are understood, also where they do not say so", async () => {
    const pair = { type: "array", items: [{ type: "string" }, { type: "integer" }] };
    for (const dialect of [{ $schema: "http://json-schema.org/draft-07/schema#" }, {}]) {
      const tool = toolWith({ ...dialect, type: "object", properties: { pair } });
      expect(await checker.check({ tool, args: { pair: ["a", 1] } })).toMatchObject({ ok: true, warnings: [] });
      expect(await checker.check({ tool, args: { pair: ["a", "b"] } })).toMatchObject({
        ok: false,
        envelope: { error_code: "SCHEMA_TYPE_MISMATCH", details: [{ path: "pair[1]" }] },
      });
    }
  });

  it("and values of any kind give a verdict, and a valid envelope where it is a refusal", async () => {
    const leaf = fc.constantFrom<JsonSchema>(
      { type: "string" },
      { type: "integer", minimum: 3 },
      { enum: ["a", 1, null] },
      { const: 3 },
      { type: "bad" },
      { pattern: "^a" },
      {},
    );
    const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.record({
          type: fc.constant("object"),
          properties: fc.dictionary(fc.string({ maxLength: 3 }), tie("schema"), { maxKeys: 3 }),
          required: fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }),
          additionalProperties: fc.boolean(),
        }),
        fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
        fc.record({ type: fc.constant("array"), items: tie("schema"), minItems: fc.nat({ max: 2 }) }),
        fc.dictionary(
          fc.constantFrom("type", "properties", "items", "required", "enum", "$ref", "allOf", "if", "$defs", "not", "format"),
          fc.jsonValue({ maxDepth: 2 }),
          { maxKeys: 3 },
        ),
      ),
    }));
    const value = fc.oneof(fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue()), fc.jsonValue(), fc.object());
    await fc.assert(
      fc.asyncProperty(schema, value, async (inputSchema, args) => {
        const verdict = await checker.check({ tool: toolWith(inputSchema), args });
        if (!verdict.ok) expect(envelopeSchema.parse(verdict.envelope)).toEqual(verdict.envelope);
      }),
      { numRuns: 300 },
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolErrorSchema, type ToolError } from "../errors/tool-error.ts";
import { checkToolInput, type InputVerdict } from "./check-tool-input.ts";
import type { JsonSchema } from "./backend-tool.ts";

function check(schema: JsonSchema, args: unknown, extraArguments?: Readonly<Record<string, unknown>>): InputVerdict {
  return checkToolInput({ name: "get_price", schema, args, extraArguments });
}

const price: JsonSchema = {
  type: "object",
  properties: {
    symbol: { type: "string", minLength: 1 },
    days: { type: "integer", minimum: 1, maximum: 365, default: 30 },
    kind: { enum: ["open", "close"] },
    note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }] },
  },
  required: ["symbol"],
  additionalProperties: false,
  examples: [{ symbol: "AAPL", days: 5 }],
};

function toolErrorOf(schema: JsonSchema, args: unknown): ToolError {
  const verdict = check(schema, args);
  if (verdict.ok) throw new Error("The call was accepted.");
  expect(toolErrorSchema.parse(verdict.toolError)).toEqual(verdict.toolError);
  return verdict.toolError;
}

function refusal(facts: Partial<ToolError>): unknown {
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

function detail(error_code: string, path: string, issue: string, received_type: string): ToolError["details"][number] {
  return { path, issue, received_type, error_code };
}

describe("checkToolInput", () => {
  it("accepts valid arguments", () => {
    const args = { symbol: "AAPL", days: 5, kind: "open", note: null };
    expect(check(price, args)).toEqual({ ok: true, args, warnings: [] });
  });

  it("reports a missing field", () => {
    expect(toolErrorOf(price, { days: 5 })).toEqual(
      refusal({
        error_code: "SCHEMA_REQUIRED",
        summary: "The tool was not called. symbol is missing.",
        details: [detail("SCHEMA_REQUIRED", "symbol", "symbol is missing.", "missing")],
        examples: [{ symbol: "AAPL", days: 5 }],
      }),
    );
  });

  it("reports an unknown field with the one that was meant", () => {
    expect(toolErrorOf(price, { symbol: "AAPL", dayz: 5 })).toEqual(
      refusal({
        error_code: "SCHEMA_ADDITIONAL_PROPERTIES",
        summary: 'The tool was not called. dayz is not a known field. Did you mean "days"?',
        details: [detail("SCHEMA_ADDITIONAL_PROPERTIES", "dayz", 'dayz is not a known field. Did you mean "days"?', "number")],
        hints: ['dayz: Did you mean "days"?'],
        examples: [{ symbol: "AAPL", days: 5 }],
      }),
    );
  });

  it("reports different problems under one code, each with its own code, and the example of the schema", () => {
    expect(toolErrorOf(price, { symbol: 7, days: "30", kind: "Close ", note: "too long" })).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: "The tool was not called. symbol must be a string, not 7. And 3 more problems.",
        details: [
          detail("SCHEMA_TYPE_MISMATCH", "symbol", "symbol must be a string, not 7.", "number"),
          detail("SCHEMA_TYPE_MISMATCH", "days", 'days must be an integer, not "30".', "string"),
          detail("SCHEMA_ENUM_MISMATCH", "kind", 'kind must be one of "open", "close", not "Close ". Did you mean "close"?', "string"),
          detail(
            "SCHEMA_ANY_OF_FAILED",
            "note",
            'note matches none of the alternatives: note is longer than 5 characters. Or: note must be null, not "too long".',
            "string",
          ),
        ],
        hints: ['kind: Did you mean "close"?'],
        examples: [{ symbol: "AAPL", days: 5 }],
      }),
    );
  });

  it("follows references into lists, as pydantic writes them", () => {
    const schema = {
      $defs: {
        Filter: {
          type: "object",
          properties: { field: { type: "string" }, values: { type: "array", items: { type: "string" } } },
          required: ["field", "values"],
        },
      },
      type: "object",
      properties: { filters: { type: "array", items: { $ref: "#/$defs/Filter" } } },
    };
    expect(toolErrorOf(schema, { filters: [{ field: "state", values: ["on", 3] }, { field: "name" }] })).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: "The tool was not called. filters[0].values[1] must be a string, not 3. And 1 more problem.",
        details: [
          detail("SCHEMA_TYPE_MISMATCH", "filters[0].values[1]", "filters[0].values[1] must be a string, not 3.", "number"),
          detail("SCHEMA_REQUIRED", "filters[1].values", "filters[1].values is missing.", "missing"),
        ],
      }),
    );
  });

  it.each([
    ["SCHEMA_CONST_MISMATCH", { const: "v1" }, "v2", 'x must be "v1", not "v2".'],
    ["SCHEMA_MAX_ITEMS", { type: "array", maxItems: 1 }, [1, 2], "x has more than 1 items."],
    ["SCHEMA_MIN_ITEMS", { type: "array", minItems: 1, items: { type: "string" } }, [], "x must not be empty."],
    ["SCHEMA_UNIQUE_ITEMS", { type: "array", uniqueItems: true }, [1, 2, 1], "x has equal items: 0 and 2."],
    ["SCHEMA_MIN_LENGTH", { type: "string", minLength: 3 }, "a", "x is shorter than 3 characters."],
    ["SCHEMA_MAXIMUM", { type: "number", maximum: 5 }, 6, "x must be at most 5, not 6."],
    ["SCHEMA_MINIMUM", { type: "number", exclusiveMinimum: 5 }, 5, "x must be more than 5, not 5."],
    ["SCHEMA_MULTIPLE_OF", { type: "integer", multipleOf: 5, default: 10 }, 6, "x must be a multiple of 5, not 6."],
    ["SCHEMA_PATTERN_MISMATCH", { type: "string", pattern: "^B0" }, "A", 'x must match the pattern "^B0", not "A".'],
    ["SCHEMA_FORMAT_INVALID", { type: "string", format: "date" }, "today", 'x must have the format "date", not "today".'],
    ["SCHEMA_ONE_OF_FAILED", { oneOf: [{ type: "integer" }, { minimum: 2 }] }, 3, "x matches more than one of the alternatives."],
    ["SCHEMA_TYPE_MISMATCH", { type: ["object", "null"] }, '{"a": 1}', "x must be an object or null, not its JSON text."],
    ["SCHEMA_VALIDATION_FAILED", { not: { type: "string" } }, "a", 'x violates "not" of the schema.'],
  ])("has the code %s", (code, schema, value, issue) => {
    expect(toolErrorOf({ type: "object", properties: { x: schema } }, { x: value })).toEqual(
      refusal({
        error_code: code,
        summary: `The tool was not called. ${issue}`,
        details: [detail(code, "x", issue, Array.isArray(value) ? "array" : typeof value)],
      }),
    );
  });

  it("says what each alternative requires", () => {
    const schema = {
      type: "object",
      properties: {
        by: {
          oneOf: [
            { type: "object", required: ["id"] },
            { type: "object", required: ["name"] },
          ],
        },
      },
    };
    const issue = "by matches none of the alternatives: by.id is missing. Or: by.name is missing.";
    expect(toolErrorOf(schema, { by: {} })).toEqual(
      refusal({
        error_code: "SCHEMA_ONE_OF_FAILED",
        summary: `The tool was not called. ${issue}`,
        details: [detail("SCHEMA_ONE_OF_FAILED", "by", issue, "object")],
      }),
    );
  });

  it("refuses arguments that are not an object", () => {
    expect(toolErrorOf(price, ["AAPL"])).toEqual(
      refusal({
        error_code: "SCHEMA_TYPE_MISMATCH",
        summary: "The tool was not called. The call must be an object, not an array.",
        details: [detail("SCHEMA_TYPE_MISMATCH", "", "The call must be an object, not an array.", "array")],
      }),
    );
  });

  it("adds arguments of the identity context that the schema names, and never shows them", () => {
    const schema = {
      type: "object",
      properties: { profile: { type: "string" }, days: { type: "integer" } },
      required: ["profile", "days"],
      additionalProperties: false,
    };
    const extraArguments = { profile: "secret-profile", region: "EU" };
    expect(check(schema, { days: 3, profile: "mine" }, extraArguments)).toEqual({
      ok: true,
      args: { days: 3, profile: "secret-profile" },
      warnings: ["profile is set by the identity context; the value in the call was ignored."],
    });
    const refused = check(schema, {}, extraArguments);
    expect(refused).toMatchObject({ ok: false, toolError: { error_code: "SCHEMA_REQUIRED", details: [{ path: "days" }] } });
    const wrong = check(
      { properties: { profile: { type: "integer" } }, anyOf: [{ properties: { profile: { type: "integer" } } }] },
      {},
      extraArguments,
    );
    expect(wrong).toMatchObject({ ok: false, toolError: { error_code: "SCHEMA_ANY_OF_FAILED" } });
    expect(JSON.stringify([refused, wrong])).not.toContain("secret-profile");
  });

  it("reports no error about arguments of the identity context that the schema forbids", () => {
    const schema = { type: "object", unevaluatedProperties: false };
    expect(check(schema, {}, { profile: "mine" })).toEqual({ ok: true, args: { profile: "mine" }, warnings: [] });
  });

  it("shows the valid examples of the schema without arguments of the identity context", () => {
    const schema = {
      properties: { profile: { type: "string" }, days: { type: "integer" } },
      required: ["profile", "days"],
      examples: [{ days: "3" }, { profile: "theirs", days: 3 }, { days: 4 }],
    };
    expect(check(schema, {}, { profile: "mine" })).toMatchObject({ ok: false, toolError: { examples: [{ days: 3 }, { days: 4 }] } });
    expect(check(schema, {})).toMatchObject({ ok: false, toolError: { examples: [{ profile: "theirs", days: 3 }] } });
  });
});

describe("untrusted schemas", () => {
  const nested = (depth: number): JsonSchema => (depth === 0 ? { type: "string" } : { properties: { a: nested(depth - 1) } });
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic["not"] = cyclic;
  const deepValue = (depth: number): unknown => (depth === 0 ? 0 : { x: deepValue(depth - 1) });
  const unchecked = (reason: string): string =>
    `The arguments of get_price were not checked before the call: its schema cannot be used here (${reason}).`;

  it.each<[string, JsonSchema, string]>([
    ["with an unknown type", { type: "strin" }, "type must be JSONType or JSONType[]: strin"],
    ["with a remote reference", { $ref: "https://example.test/x.json" }, "can't resolve reference https://example.test/x.json from id #"],
    ["with a pattern that is none", { properties: { x: { pattern: "(" } } }, "Invalid regular expression: /(/u: Unterminated group"],
    ["that contains itself", cyclic, "it is nested too deeply"],
    ["that is asynchronous", { $async: true, type: "object", required: ["y"] }, "it is asynchronous"],
  ])("%s give a warning and leave the decision to the server", (_, schema, reason) => {
    expect(check(schema, { x: "value" })).toEqual({ ok: true, args: { x: "value" }, warnings: [unchecked(reason)] });
  });

  const doubling = Array.from({ length: 40 }, (_, i) => [
    `d${i}`,
    i === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
  ]);
  const alternatives = (count: number): JsonSchema => ({
    properties: { x: { type: "array", items: { anyOf: Array.from({ length: count }, (_, i) => ({ const: i })) } } },
  });
  const tooMuch = [
    "checking takes longer than 100 ms",
    "Maximum call stack size exceeded",
    "it finds more than 10000 errors",
    "it is nested too deeply",
  ].map(unchecked);
  const node: JsonSchema = { type: "object", properties: { x: { $ref: "#/$defs/node" } } };
  it.each<[string, JsonSchema, unknown]>([
    ["a pattern that backtracks forever", { properties: { x: { pattern: "^(a+)+$" } } }, `${"a".repeat(60)}!`],
    [
      "unique items in a large array",
      { properties: { x: { type: "array", uniqueItems: true } } },
      Array.from({ length: 100_000 }, (_, i) => ({ i })),
    ],
    ["recursive anyOf", { $ref: "#/$defs/node", $defs: { node: { anyOf: [node, node] } } }, deepValue(40)],
    ["references that double at each step", { $ref: "#/$defs/d0", $defs: Object.fromEntries(doubling) as JsonSchema }, "x"],
    ["a deep schema", nested(5_000), "x"],
    ["a wide schema", { properties: Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`p${i}`, { minLength: i }])) }, "x"],
    ["references without end", { anyOf: [{ $ref: "#" }, { $ref: "#" }] }, "x"],
    ["many alternatives for many items", alternatives(479), Array.from({ length: 200_000 }, () => 478)],
  ])("do not block the host: %s", (_, schema, x) => {
    const before = process.threadCpuUsage();
    for (let call = 0; call < 10; call += 1) {
      const verdict = check(schema, { x });
      const warning = verdict.ok ? verdict.warnings[0] : null;
      expect(tooMuch).toContain(warning);
    }
    // Three attempts of about 100 ms of CPU time each. Without a limit, none of them would end.
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(3_000);
    expect(check(price, { symbol: "A" })).toMatchObject({ ok: true, warnings: [] });
  });

  it.each([
    [
      "anyOf",
      alternatives(60),
      "x[0] matches none of the alternatives: x[0] must be 0, not -1. Or: x[0] must be 1, not -1. Or: x[0] must be 2, not -1.",
    ],
    [
      "anyOf",
      alternatives(480),
      "x[0] matches none of the alternatives: x[0] must be 0, not -1. Or: x[0] must be 1, not -1. Or: x[0] must be 2, not -1.",
    ],
    ["type", { properties: { x: { items: { type: "string" } } } }, "x[0] must be a string, not -1."],
    ["$ref", { properties: { x: { items: { $ref: "#/$defs/a" } } }, $defs: { a: { type: "string" } } }, "x[0] must be a string, not -1."],
  ])("report the first problem of a value with very many: %s", (_, schema, issue) => {
    const { details } = toolErrorOf(schema, { x: Array.from({ length: 20_000 }, () => -1) });
    expect(details.map((one) => one.issue)).toEqual([issue]);
  });

  it("report alternatives as one problem, even when there are too many to report all", () => {
    const { details } = toolErrorOf(alternatives(60), { x: [-1, -1, -1] });
    expect(details.map(({ path, error_code }) => [path, error_code])).toEqual([
      ["x[0]", "SCHEMA_ANY_OF_FAILED"],
      ["x[1]", "SCHEMA_ANY_OF_FAILED"],
    ]);
  });

  it("that failed are not used again when a server sends them again", () => {
    let reads = 0;
    const x = {
      get y(): string {
        reads += 1;
        return `${"a".repeat(60)}!`;
      },
    };
    const call = (): void => {
      const schema = { title: "sent again", properties: { x: { properties: { y: { pattern: "^(a+)+$" } } } } };
      expect(check(schema, { x })).toMatchObject({ warnings: [unchecked("checking takes longer than 100 ms")] });
    };
    for (let attempt = 0; attempt < 3; attempt += 1) call();
    const before = reads;
    call();
    expect(reads).toBe(before);
  });

  it("are checked completely when the machine stalls", () => {
    const stalls = [1, 2];
    const late = {
      get y(): string {
        if (stalls.pop() !== undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
        return "b";
      },
    };
    const schema = { properties: { x: { properties: { y: { pattern: "^a" } } } } };
    expect(check(schema, { x: late })).toMatchObject({ ok: false, toolError: { details: [{ path: "x.y" }] } });
    expect(stalls).toEqual([]);
  });

  it("of older dialects work, even without $schema", () => {
    const pair = { type: "array", items: [{ type: "string" }, { type: "integer" }] };
    for (const dialect of [{ $schema: "http://json-schema.org/draft-07/schema#" }, {}]) {
      const schema = { ...dialect, type: "object", properties: { pair } };
      expect(check(schema, { pair: ["a", 1] })).toMatchObject({ ok: true, warnings: [] });
      expect(check(schema, { pair: ["a", "b"] })).toMatchObject({
        ok: false,
        toolError: { error_code: "SCHEMA_TYPE_MISMATCH", details: [{ path: "pair[1]" }] },
      });
    }
  });

  it("and values of any kind give a verdict, and a valid tool error for a refusal", () => {
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
    fc.assert(
      fc.property(schema, value, (inputSchema, args) => {
        const verdict = check(inputSchema, args);
        if (!verdict.ok) expect(toolErrorSchema.parse(verdict.toolError)).toEqual(verdict.toolError);
      }),
      { numRuns: 300 },
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonSchema } from "./backend-tool.ts";
import { createToolCatalog } from "./create-tool-catalog.ts";
import { describeTools, listTags } from "./describe-tool.ts";
import { toPythonSignature } from "./to-python-signature.ts";
import { sampleSource, sampleTool } from "./fixtures/sample-tools.ts";
import { createToolPolicy } from "./tool-policy.ts";

function signatureOf(properties: JsonSchema, required: readonly string[] = [], more: JsonSchema = {}): string {
  return toPythonSignature("f", { inputSchema: { type: "object", properties, required, ...more } }).signature;
}

describe("a Python signature", () => {
  it("has required parameters first, defaults, literals and the return type", () => {
    expect(
      toPythonSignature("get_price", {
        inputSchema: {
          type: "object",
          properties: {
            days: { type: "integer", default: 30 },
            symbol: { type: "string" },
            kind: { anyOf: [{ enum: ["a", "b"] }, { type: "null" }], default: null },
          },
          required: ["symbol"],
        },
        outputSchema: { type: "array", items: { type: "object" } },
      }),
    ).toEqual({ signature: 'get_price(symbol: str, days: int = 30, kind: Literal["a", "b"] | None = None) -> list[dict]', shapes: [] });
  });

  it.each<[JsonSchema, string]>([
    [{ type: "string" }, "str = ..."],
    [{ type: ["string", "null"] }, "str | None = None"],
    [{ type: "string", nullable: true }, "str | None = None"],
    [{ anyOf: [{ type: "integer" }, { type: "array", items: { type: "string" } }] }, "int | list[str] = ..."],
    [{ oneOf: [{ type: "null" }, { type: "number" }] }, "float | None = None"],
    [{ type: "boolean", default: false }, "bool = False"],
    [{ type: "array" }, "list = ..."],
    [{ type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } }, "list[str | None] = ..."],
    [{ type: "array", items: { type: "array", items: { type: "number" } }, default: [[1.5]] }, "list[list[float]] = [[1.5]]"],
    [{ type: "object", additionalProperties: { type: "integer" } }, "dict[str, int] = ..."],
    [{ type: "object", default: { a: null } }, 'dict = {"a": None}'],
    [{ const: "v1" }, 'Literal["v1"] = ...'],
    [{ enum: [1, true, null] }, "Literal[1, True] | None = None"],
    [{ enum: Array.from({ length: 30 }, (_, index) => `c${index}`) }, "str = ..."],
    [{ $ref: "#/$defs/Nope" }, "Any = None"],
    [{ $ref: "https://example.test/x" }, "Any = None"],
    [{ allOf: [{ type: "string" }] }, "str = ..."],
    [{}, "Any = None"],
    [{ type: "odd" }, "Any = None"],
  ])("writes the type %j as %s", (schema, written) => {
    expect(signatureOf({ x: schema })).toBe(`f(x: ${written}) -> Any`);
  });

  it("defines each shape once, named by its title or property, including recursive ones", () => {
    const $defs = {
      Filter: {
        title: "Filter",
        type: "object",
        properties: { field: { type: "string" }, all: { type: "array", items: { $ref: "#/$defs/Filter" } }, "x-y": { type: "integer" } },
        required: ["field"],
      },
    };
    const range = { type: "object", properties: { from: { type: "string" } } };
    const properties = {
      filter: { $ref: "#/$defs/Filter" },
      others: { type: "array", items: { $ref: "#/$defs/Filter" } },
      date_ranges: { type: "array", items: range },
    };
    expect(toPythonSignature("list", { inputSchema: { type: "object", $defs, properties, required: ["filter"] } })).toEqual({
      signature: "list(filter: Filter, others: list[Filter] = ..., date_ranges: list[DateRange] = ...) -> Any",
      shapes: [
        'class Filter(TypedDict):\n    field: str\n    all: NotRequired[list[Filter]]\n    "x-y": NotRequired[int]',
        'class DateRange(TypedDict):\n    "from": NotRequired[str]',
      ],
    });
  });

  it("is finite for an endless schema", () => {
    const eight = Array.from({ length: 8 }, () => ({ $ref: "#/properties/x" }));
    expect(signatureOf({ x: { anyOf: eight } })).toBe("f(x: Any = None) -> Any");
  });

  it("exists for any schema", () => {
    const json = fc.dictionary(
      fc.constantFrom("type", "properties", "items", "required", "enum", "$ref", "allOf", "anyOf", "default", "const", "$defs", "title"),
      fc.jsonValue(),
      { maxKeys: 6 },
    );
    fc.assert(
      fc.property(json, json, (inputSchema, property) => {
        expect(
          toPythonSignature("f", { inputSchema: { ...inputSchema, properties: { p: property } }, outputSchema: property }).signature,
        ).toMatch(/^f\(.*\) -> ./s);
      }),
    );
  });
});

describe("describeTools", () => {
  const price = sampleTool({
    name: "get_price",
    description: "Prices of one symbol. Daily closes, adjusted.\nMore words.",
    inputSchema: {
      type: "object",
      properties: {
        symbol: { type: "string", description: "The ticker.", maxLength: 8, examples: ["AAPL"] },
        days: { type: "integer", minimum: 1 },
      },
      required: ["symbol"],
    },
    annotations: { readOnlyHint: true },
    tags: ["prices"],
  });
  const drop = sampleTool({ name: "drop_all", annotations: { destructiveHint: true } });
  const catalog = createToolCatalog({ sources: [sampleSource("market", [price, drop]), sampleSource("ads", [], "It is down.")] });

  it("describes a tool briefly, in detail and in full", async () => {
    expect(await describeTools({ catalog, tools: "get_price", detail: "brief" })).toEqual({
      tools: [{ name: "get_price", description: "Prices of one symbol." }],
    });
    expect(await describeTools({ catalog, tools: ["get_price", "market__get_price"] })).toEqual({
      tools: [
        {
          name: "get_price",
          signature: "get_price(symbol: str, days: int = ...) -> Any",
          description: "Prices of one symbol. Daily closes, adjusted.\nMore words.",
          parameters: { symbol: 'The ticker. (characters <= 8, e.g. "AAPL")', days: "(>= 1)" },
          annotations: { readOnlyHint: true },
          tags: ["market", "prices"],
        },
      ],
    });
    expect(await describeTools({ catalog, tools: ["get_price"], detail: "full" })).toEqual({
      tools: [
        {
          name: "get_price",
          description: "Prices of one symbol. Daily closes, adjusted.\nMore words.",
          inputSchema: price.inputSchema,
          annotations: { readOnlyHint: true },
          tags: ["market", "prices"],
        },
      ],
    });
  });

  it("lists unknown names with similar ones", async () => {
    expect(
      await describeTools({ catalog, tools: ["get_prize", "ads__x", "drop_all"], detail: "brief", policy: createToolPolicy() }),
    ).toEqual({
      tools: [
        {
          name: "drop_all",
          description: "Prices of one symbol.",
          policy: "drop_all may not be called: it says that it is destructive, and it is not on the allow-list.",
        },
      ],
      notFound: [
        { name: "get_prize", didYouMean: ["get_price"] },
        { name: "ads__x", didYouMean: [] },
      ],
      gaps: ["ads: It is down."],
    });
  });

  it("omits a schema that is too large", async () => {
    const huge = sampleTool({ name: "huge", inputSchema: { enum: ["x".repeat(100_000)] } });
    const answer = await describeTools({
      catalog: createToolCatalog({ sources: [sampleSource("s", [huge])] }),
      tools: "huge",
      detail: "full",
    });
    expect(answer.tools[0]!.inputSchema).toBe('Omitted: the schema has 100013 characters. Use "detailed".');
  });
});

it("lists tags with the number of their tools", async () => {
  const tools = [
    sampleTool({ name: "a", tags: ["x", "y"] }),
    sampleTool({ name: "b", tags: ["y", "y"] }),
    sampleTool({ name: "c", server: "ads" }),
  ];
  expect(await listTags({ catalog: createToolCatalog({ sources: [sampleSource("s", tools)] }) })).toEqual({
    tags: [
      { tag: "market", tools: 2 },
      { tag: "y", tools: 2 },
      { tag: "ads", tools: 1 },
      { tag: "x", tools: 1 },
    ],
    total: 3,
  });
});

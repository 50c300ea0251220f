import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createToolError, serializeToolError } from "./tool-error.ts";
import { findToolErrorInText, parseForeignToolError } from "./foreign-tool-error.ts";

const foreign = {
  error_kind: "ads_api_http",
  tool: "list_campaigns",
  summary: "HTTP 422 {not a brace}",
  details: [{ path: "", issue: "x", received_type: "object" }],
  error_code: "ADS_API_HTTP_422",
  retryable: false,
  _envelope_version: 1,
  legacy_error_kind: "http",
};

describe("parseForeignToolError", () => {
  it("returns the error of another server unchanged, from a value and from text", () => {
    expect(parseForeignToolError(foreign)).toEqual(foreign);
    expect(parseForeignToolError(JSON.stringify(foreign))).toEqual(foreign);
  });

  it.each([
    ["an object without a kind", { ...foreign, error_kind: undefined }],
    ["an object without a summary", { ...foreign, summary: 3 }],
    ["an object of another version", { ...foreign, _envelope_version: 2 }],
    ["an array", [foreign]],
    ["text that is not JSON", "error_kind summary _envelope_version"],
    ["a text that is too large", JSON.stringify({ ...foreign, more: "x".repeat(70_000) })],
    ["a value that is too large", { ...foreign, more: "x".repeat(70_000) }],
    ["a value that JSON cannot represent", { ...foreign, more: 3n }],
  ])("refuses %s", (_, value) => {
    expect(parseForeignToolError(value)).toBeNull();
  });

  it("is serialized as compact ASCII, with every key", () => {
    expect(serializeToolError({ error_kind: "k", summary: "é", _envelope_version: 1, more: [1] })).toBe(
      String.raw`{"error_kind":"k","summary":"\u00e9","_envelope_version":1,"more":[1]}`,
    );
  });
});

describe("findToolErrorInText", () => {
  it("finds the error after words, between braces, and inside another object", () => {
    const json = JSON.stringify(foreign);
    expect(findToolErrorInText(`Error calling tool 'x': ${json}`)).toEqual(foreign);
    expect(findToolErrorInText(`{odd} "quote { ${json} } trailing`)).toEqual(foreign);
    expect(findToolErrorInText(JSON.stringify({ error: foreign }))).toEqual(foreign);
  });

  it("returns null for text without a v1 error", () => {
    expect(findToolErrorInText("no envelope")).toBeNull();
    expect(findToolErrorInText('"_envelope_version" {"a": 1}')).toBeNull();
    expect(findToolErrorInText(`{"_envelope_version": 1 ${"{".repeat(200_000)}`)).toBeNull();
  });

  it("finds each of our own tool errors after any words without quotes", () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !/["{]/.test(text)),
        fc.string({ minLength: 1 }),
        (before, summary) => {
          const toolError = createToolError({ code: "PYTHON_ERROR", tool: "t", summary });
          expect(findToolErrorInText(`${before}${serializeToolError(toolError)}`)).toEqual(toolError);
        },
      ),
    );
  });
});

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

describe("parseForeignEnvelope", () => {
  it("keeps an envelope of another server whole, as a value and as text", () => {
    expect(parseForeignToolError(foreign)).toEqual(foreign);
    expect(parseForeignToolError(JSON.stringify(foreign))).toEqual(foreign);
  });

  it.each([
    ["no kind", { ...foreign, error_kind: undefined }],
    ["no summary", { ...foreign, summary: 3 }],
    ["another version", { ...foreign, _envelope_version: 2 }],
    ["a list", [foreign]],
    ["text that is no JSON", "error_kind summary _envelope_version"],
    ["too large a text", JSON.stringify({ ...foreign, more: "x".repeat(70_000) })],
    ["too large a value", { ...foreign, more: "x".repeat(70_000) }],
    ["a value without a JSON form", { ...foreign, more: 3n }],
  ])("refuses %s", (_, value) => {
    expect(parseForeignToolError(value)).toBeNull();
  });

  it("is written as compact ASCII, with every key", () => {
    expect(serializeToolError({ error_kind: "k", summary: "é", _envelope_version: 1, more: [1] })).toBe(
      String.raw`{"error_kind":"k","summary":"\u00e9","_envelope_version":1,"more":[1]}`,
    );
  });
});

describe("findEnvelopeInText", () => {
  it("finds it after words, between braces, and inside another object", () => {
    const json = JSON.stringify(foreign);
    expect(findToolErrorInText(`Error calling tool 'x': ${json}`)).toEqual(foreign);
    expect(findToolErrorInText(`{odd} "quote { ${json} } trailing`)).toEqual(foreign);
    expect(findToolErrorInText(JSON.stringify({ error: foreign }))).toEqual(foreign);
  });

  it("finds nothing where there is none", () => {
    expect(findToolErrorInText("no envelope")).toBeNull();
    expect(findToolErrorInText('"_envelope_version" {"a": 1}')).toBeNull();
    expect(findToolErrorInText(`{"_envelope_version": 1 ${"{".repeat(200_000)}`)).toBeNull();
  });

  it("finds every envelope of ours behind any words without a quote", () => {
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

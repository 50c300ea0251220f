import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createToolError, toolErrorSchema, parseToolError, serializeToolError } from "./tool-error.ts";
import { errorTable, lookUpError, type ToolErrorCode, type ErrorCode } from "./error-table.ts";
import { SluiceError, toModelCode } from "./sluice-error.ts";

const codes = Object.entries(errorTable)
  .filter(([code, entry]) => "kind" in entry && code !== "UPSTREAM_HTTP_STATUS")
  .map(([code]) => code as ToolErrorCode);

describe("ToolError", () => {
  it("has the nine keys of version 1 in order", () => {
    expect(
      createToolError({
        code: "TOOL_NOT_FOUND",
        tool: "get_prize",
        summary: "There is no tool get_prize.",
        hints: ["Did you mean get_price?"],
      }),
    ).toEqual({
      error_kind: "tool_not_found",
      tool: "get_prize",
      summary: "There is no tool get_prize.",
      details: [],
      hints: ["Did you mean get_price?"],
      examples: [],
      error_code: "TOOL_NOT_FOUND",
      retryable: false,
      _envelope_version: 1,
    });
  });

  it("takes kind and retryable from the table; a backend can override retryable", () => {
    expect(lookUpError("SANDBOX_LOST")).toMatchObject({ kind: "sandbox_runtime", retryable: true });
    expect(lookUpError("UPSTREAM_HTTP_404")).toMatchObject({ kind: "upstream_http", retryable: false });
    expect(lookUpError("UPSTREAM_HTTP_503")).toMatchObject({ kind: "upstream_http", retryable: true });
    expect(lookUpError("UPSTREAM_HTTP_429")).toMatchObject({ kind: "rate_limited", retryable: true });
    expect(createToolError({ code: "UPSTREAM_HTTP_503", tool: "t", summary: "s", retryable: false }).retryable).toBe(false);
  });

  it.each(codes)("is valid for %s", (code) => {
    const toolError = createToolError({ code, tool: "t", summary: "s", meta: { retry_after_seconds: 3 } });
    expect(parseToolError(serializeToolError(toolError))).toEqual(toolError);
  });

  it("exists for every error that can be thrown, with a code that models know", () => {
    const modelCode = (code: ErrorCode): ToolErrorCode => toModelCode(new SluiceError({ code, message: "m" }));
    expect((Object.keys(errorTable) as ErrorCode[]).filter((code) => lookUpError(modelCode(code)).kind === undefined)).toEqual([]);
    expect((["COLUMN_UNKNOWN", "GVISOR_START", "SANDBOX_START", "SANDBOX_QUEUE_TIMEOUT", "TURN_OVER"] as const).map(modelCode)).toEqual([
      "COLUMN_UNKNOWN",
      "SANDBOX_UNAVAILABLE",
      "SANDBOX_LOST",
      "QUEUE_FULL",
      "INTERNAL_ERROR",
    ]);
    expect(toModelCode(new Error("m"))).toBe("INTERNAL_ERROR");
  });

  it("has HTTP status 503 for every missing sandbox, except when waiting helps", () => {
    const codes = (Object.keys(errorTable) as ErrorCode[]).filter((code) => lookUpError(code).exit === 3);
    expect(codes.filter((code) => lookUpError(code).status !== 503)).toEqual(["SANDBOX_QUEUE_TIMEOUT"]);
    expect(codes).toContain("GVISOR_START");
  });

  it("has uppercase codes only", () => {
    expect(Object.keys(errorTable).filter((code) => !/^[A-Z][A-Z0-9_]*$/.test(code))).toEqual([]);
  });

  it("is rejected with a code of another kind, the placeholder code, an extra key, or another version", () => {
    const toolError = createToolError({ code: "PYTHON_ERROR", tool: "t", summary: "s" });
    expect(parseToolError({ ...toolError, error_kind: "auth_error" })).toBeNull();
    expect(parseToolError({ ...toolError, error_kind: "upstream_http", error_code: "UPSTREAM_HTTP_STATUS" })).toBeNull();
    expect(parseToolError({ ...toolError, error_code: "toString" })).toBeNull();
    expect(parseToolError({ ...toolError, repair: {} })).toBeNull();
    expect(parseToolError({ ...toolError, _envelope_version: 2 })).toBeNull();
    expect(parseToolError("not json")).toBeNull();
  });

  it("is serialized as compact ASCII", () => {
    const text = serializeToolError(createToolError({ code: "PYTHON_ERROR", tool: "t", summary: "naïve – 😀" }));
    expect(text).toContain(String.raw`"summary":"na\u00efve \u2013 \ud83d\ude00"`);
    expect(parseToolError(text)?.summary).toBe("naïve – 😀");
  });

  it("shortens every text that is too long, and keeps both ends of a traceback", () => {
    const traceback = `Traceback\n${"x\n".repeat(10_000)}KeyError: 'close'`;
    const details = Array.from({ length: 100 }, () => ({
      path: "p".repeat(5_000),
      issue: "i".repeat(5_000),
      received_type: "string",
      traceback,
    }));
    const toolError = createToolError({
      code: "PYTHON_ERROR",
      tool: "t",
      summary: "s".repeat(9_000),
      details,
      hints: Array.from({ length: 50 }, (_, i) => `${i}`),
    });
    expect(toolError.summary).toHaveLength(2_000);
    expect(toolError.details).toHaveLength(40);
    expect(toolError.details[0]?.issue).toHaveLength(1_000);
    expect(toolError.details[0]?.traceback).toMatch(/^Traceback[\s\S]{4,4100}KeyError: 'close'$/);
    expect(toolError.hints).toEqual([
      "Only the first 40 of 100 problems are listed.",
      ...Array.from({ length: 10 }, (_, i) => `${i}`),
      "40 more hints were left out.",
    ]);
  });

  it("does not split a surrogate pair", () => {
    const { summary, details } = createToolError({
      code: "PYTHON_ERROR",
      tool: "t",
      summary: `${"s".repeat(1_998)}😀😀`,
      details: [{ path: "", issue: "", received_type: "string", traceback: `x${"😀".repeat(4_000)}` }],
    });
    expect(summary).toBe(`${"s".repeat(1_998)}…`);
    expect(details[0]?.traceback).toMatch(/^x(?:😀)+\n…\n(?:😀)+$/u);
  });

  it("survives serialization with any text", () => {
    const words = fc.string({ unit: "binary", minLength: 1 });
    fc.assert(
      fc.property(fc.constantFrom(...codes), words, words, words, (code, tool, summary, issue) => {
        const toolError = createToolError({
          code,
          tool,
          summary,
          details: [{ path: tool, issue, received_type: "string" }],
          hints: [issue],
        });
        expect(toolErrorSchema.parse(JSON.parse(serializeToolError(toolError)))).toEqual(toolError);
      }),
    );
  });
});

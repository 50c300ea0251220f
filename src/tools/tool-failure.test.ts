import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { toolErrorSchema } from "../errors/tool-error.ts";
import { parseForeignToolError } from "../errors/foreign-tool-error.ts";
import { failureOfAnswer, failureOfError, failureOfTimeout, type ToolFailure } from "./tool-failure.ts";

const now = (): number => Date.parse("2026-11-16T12:00:00Z");
const context = { tool: "list_campaigns", now };
const rest = { tool: "list_campaigns", examples: [], _envelope_version: 1 };

function ofResult(result: object): ToolFailure | null {
  return failureOfAnswer({ output: result, as: "mcp" }, context);
}

function ofText(text: string): ToolFailure | null {
  return ofResult({ isError: true, content: [{ type: "text", text }] });
}

const foreign = {
  error_kind: "ads_api_http",
  tool: "list_campaigns",
  summary: "HTTP 422",
  details: [],
  hints: [],
  examples: [],
  error_code: "ADS_API_HTTP_422",
  retryable: false,
  _envelope_version: 1,
  legacy_error_kind: "http",
};

describe("an answer", () => {
  it("without isError is a value, whatever it looks like", () => {
    expect(ofResult({ content: [], structuredContent: { status: 500, error: "x" } })).toBeNull();
    expect(ofResult({ isError: false, content: [{ type: "text", text: "HTTP 500" }] })).toBeNull();
    expect(failureOfAnswer({ output: { isError: true }, as: "value" }, context)).toBeNull();
  });

  it("with a tool error of any kind is passed on unchanged", () => {
    expect(ofText(JSON.stringify(foreign))).toEqual({ kind: "toolError", toolError: foreign });
    expect(ofText(`Error calling tool 'x': ${JSON.stringify(foreign)}`)).toEqual({ kind: "toolError", toolError: foreign });
    expect(ofResult({ isError: true, content: [], structuredContent: foreign })).toEqual({ kind: "toolError", toolError: foreign });
    for (const name of ["error", "result", "detail"]) {
      for (const structuredContent of [{ [name]: foreign }, { [name]: JSON.stringify(foreign) }])
        expect(ofResult({ isError: true, content: [], structuredContent })).toEqual({ kind: "toolError", toolError: foreign });
    }
  });

  it("with an HTTP status in its structured content is upstream_http with the message of the backend", () => {
    const structuredContent = {
      error: { status: 422, code: "INVALID_ARGUMENT", message: "The budget is too low." },
      requestId: "req-7",
    };
    expect(ofResult({ isError: true, content: [], structuredContent })).toEqual({
      kind: "toolError",
      toolError: {
        ...rest,
        error_kind: "upstream_http",
        summary: "list_campaigns failed: the backend answered HTTP 422 Unprocessable Entity. The budget is too low.",
        details: [
          {
            path: "",
            issue: "HTTP 422 Unprocessable Entity.",
            received_type: "object",
            upstream_code: "INVALID_ARGUMENT",
            upstream_message: "The budget is too low.",
            request_id: "req-7",
          },
        ],
        hints: ["The backend rejected this call. Read its message, change the arguments, then call again."],
        error_code: "UPSTREAM_HTTP_422",
        retryable: false,
      },
    });
  });

  it.each([
    [{ status: 422, detail: "days is missing" }, { upstream_message: "days is missing" }],
    [{ status: 400, title: "Bad Request", detail: "days is missing" }, { upstream_message: "days is missing" }],
    [
      { status: 401, error: "invalid_grant", error_description: "The code has expired." },
      { upstream_code: "invalid_grant", upstream_message: "The code has expired." },
    ],
    [{ status: 500, error: "The disk is full." }, { upstream_message: "The disk is full." }],
    [
      { status: 422, errors: [{ code: "E1", detail: "first" }, { detail: "second" }] },
      { upstream_code: "E1", upstream_message: "first" },
    ],
    [{ status: 422, why: { days: "missing" } }, { upstream_details: '{"status":422,"why":{"days":"missing"}}' }],
    [
      { status: 422, detail: [{ loc: ["days"], msg: "missing" }] },
      { upstream_details: '{"status":422,"detail":[{"loc":["days"],"msg":"missing"}]}' },
    ],
  ])("that is %j keeps the information of the backend", (body, detail) => {
    const issue = expect.any(String) as string;
    expect(ofResult({ isError: true, structuredContent: body })).toMatchObject({
      toolError: { details: [{ path: "", issue, received_type: "object", ...detail }] },
    });
    expect(ofText(JSON.stringify(body))).toMatchObject({
      toolError: { details: [{ path: "", issue, received_type: "string", ...detail }] },
    });
  });

  it("with 429 is rate_limited with the time to wait", () => {
    expect(ofText(JSON.stringify({ status_code: 429, message: "Slow down.", retry_after: "7" }))).toEqual({
      kind: "toolError",
      toolError: {
        ...rest,
        error_kind: "rate_limited",
        summary: "list_campaigns failed: the backend answered HTTP 429 Too Many Requests. Slow down.",
        details: [{ path: "", issue: "HTTP 429 Too Many Requests.", received_type: "string", upstream_message: "Slow down." }],
        hints: ["Wait 7 s before the next call, and make fewer calls at once."],
        error_code: "UPSTREAM_HTTP_429",
        retryable: true,
        _meta: { retry_after_seconds: 7 },
      },
    });
  });

  it.each([
    ["HTTP 503 Service Unavailable", "upstream_http", "UPSTREAM_HTTP_503", true],
    ["HTTP error: 500", "upstream_http", "UPSTREAM_HTTP_500", true],
    ["Request failed with status code 404", "upstream_http", "UPSTREAM_HTTP_404", false],
    ["Client error '403 Forbidden' for url 'https://x.test'", "auth_error", "AUTH_PERMISSION", false],
    ["HTTP 401: no", "auth_error", "AUTH_AUTHENTICATION", false],
    ["HTTP 408", "upstream_http", "UPSTREAM_HTTP_408", true],
    ["HTTP/1.1 429, retry-after: 3", "rate_limited", "UPSTREAM_HTTP_429", true],
  ])("with the text %j has that status", (text, error_kind, error_code, retryable) => {
    expect(ofText(text)).toMatchObject({ kind: "toolError", toolError: { error_kind, error_code, retryable } });
  });

  it.each(["There are 500 campaigns too many", "status 404 is not a campaign's", "HTTP is not spoken here", "room 503"])(
    "with the text %j stays plain",
    (text) => {
      expect(ofText(text)).toEqual({ kind: "plain", type: "ToolError", message: text });
    },
  );

  it("without information stays plain and does not repeat credentials", () => {
    expect(ofResult({ isError: true })).toEqual({ kind: "plain", type: "ToolError", message: "The tool failed without a message." });
    expect(ofResult({ isError: true, content: [], structuredContent: { why: "no" } })).toEqual({
      kind: "plain",
      type: "ToolError",
      message: '{"why":"no"}',
    });
    expect(ofText("sent Authorization: Bearer q8Zr2mK4t7Xw9pLs3VbN to x")).toEqual({
      kind: "plain",
      type: "ToolError",
      message: "sent Authorization: [removed] to x",
    });
  });
});

describe("an error", () => {
  it("of the MCP transport with a status is upstream_http", () => {
    const body = JSON.stringify({ error: { code: "THROTTLED", message: "later" } });
    const error = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `Error POSTing to endpoint: ${body}`, {
      status: 503,
      statusText: "x",
      text: body,
    });
    expect(failureOfError(error, context)).toEqual({
      kind: "toolError",
      toolError: {
        ...rest,
        error_kind: "upstream_http",
        summary: "list_campaigns failed: the backend answered HTTP 503 Service Unavailable. later",
        details: [
          {
            path: "",
            issue: "HTTP 503 Service Unavailable.",
            received_type: "string",
            upstream_code: "THROTTLED",
            upstream_message: "later",
            upstream_details: body,
          },
        ],
        hints: ["The error is in the backend. The same call may succeed after a while."],
        error_code: "UPSTREAM_HTTP_503",
        retryable: true,
      },
    });
  });

  it("of the MCP client has the message of the body, or its own", () => {
    const ofBody = (text: string): unknown => {
      const cause = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `Error POSTing to endpoint: ${text}`, {
        status: 422,
        statusText: "x",
        text,
      });
      return failureOfError(Object.assign(new Error("The server answered with HTTP 422.", { cause }), { status: 422 }), context);
    };
    const detail = (fact: object): object => ({ toolError: { details: [{ issue: "HTTP 422 Unprocessable Entity.", ...fact }] } });
    expect(ofBody('{"detail":"no such day"}')).toMatchObject(
      detail({ upstream_message: "no such day", upstream_details: '{"detail":"no such day"}' }),
    );
    expect(ofBody("no such day")).toMatchObject(detail({ upstream_message: "no such day" }));
    expect(ofBody('{"day":0}')).toMatchObject(
      detail({ upstream_message: "The server answered with HTTP 422.", upstream_details: '{"day":0}' }),
    );
  });

  it("reads Retry-After in seconds and as a date, and the request id, from Headers and plain objects", () => {
    const withHeaders = (headers: unknown): Error => Object.assign(new Error("no"), { response: { status: 429, headers } });
    const date = "Mon, 16 Nov 2026 12:00:30 GMT";
    expect(failureOfError(withHeaders(new Headers({ "Retry-After": date, "x-request-id": "r1" })), context)).toMatchObject({
      toolError: { details: [{ request_id: "r1" }], _meta: { retry_after_seconds: 30 } },
    });
    expect(failureOfError(withHeaders({ "RETRY-AFTER": "1.5" }), context)).toMatchObject({
      toolError: { _meta: { retry_after_seconds: 1.5 } },
    });
    expect(failureOfError(withHeaders({ "retry-after": "Sun, 15 Nov 2026 12:00:00 GMT" }), context)).toMatchObject({
      toolError: { _meta: { retry_after_seconds: 0 } },
    });
    expect(failureOfError(withHeaders({ "retry-after": "soon" }), context)).not.toHaveProperty("toolError._meta");
  });

  it.each([
    [new SdkError(SdkErrorCode.RequestTimeout, "Request timed out"), "UPSTREAM_HTTP_TIMEOUT"],
    [new DOMException("late", "TimeoutError"), "UPSTREAM_HTTP_TIMEOUT"],
    [new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "UND_ERR_CONNECT_TIMEOUT" }) }), "UPSTREAM_HTTP_TIMEOUT"],
    [new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }) }), "UPSTREAM_UNREACHABLE"],
    [
      new TypeError("fetch failed", { cause: new AggregateError([Object.assign(new Error("x"), { code: "ECONNRESET" })]) }),
      "UPSTREAM_UNREACHABLE",
    ],
    [new SdkError(SdkErrorCode.ConnectionClosed, "Connection closed"), "UPSTREAM_UNREACHABLE"],
  ])("%s is %s and retryable", (error, error_code) => {
    expect(failureOfError(error, context)).toMatchObject({
      kind: "toolError",
      toolError: { error_kind: "upstream_http", error_code, retryable: true },
    });
  });

  it("without a connection gives a complete tool error", () => {
    expect(failureOfError(Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" }), context)).toEqual({
      kind: "toolError",
      toolError: {
        ...rest,
        error_kind: "upstream_http",
        summary: "list_campaigns failed: there is no connection to the backend.",
        details: [
          {
            path: "",
            issue: "ECONNREFUSED.",
            received_type: "missing",
            upstream_code: "ECONNREFUSED",
            upstream_message: "connect ECONNREFUSED 127.0.0.1:1",
          },
        ],
        hints: ["The same call may succeed later. If it fails again, do without this tool and say so."],
        error_code: "UPSTREAM_UNREACHABLE",
        retryable: true,
      },
    });
  });

  it("without a connection says when to retry, if that is known", () => {
    expect(failureOfError(Object.assign(new Error("down"), { code: "MCP_UNREACHABLE", retryAfter: 4 }), context)).toMatchObject({
      toolError: { error_code: "UPSTREAM_UNREACHABLE", _meta: { retry_after_seconds: 4 } },
    });
  });

  it("with a tool error in its message, data or cause is that tool error", () => {
    const json = JSON.stringify(foreign);
    for (const error of [
      new Error(`x: ${json}`),
      new ProtocolError(-32_603, "x", foreign),
      new Error("outer", { cause: new ProtocolError(-32_603, "x", { result: foreign }) }),
      new ProtocolError(-32_603, "x", { detail: foreign }),
      new Error("outer", { cause: new Error(json) }),
    ]) {
      expect(failureOfError(error, context)).toEqual({ kind: "toolError", toolError: foreign });
    }
  });

  it("of any other kind stays plain with its own type", () => {
    expect(failureOfError(new RangeError("too far"), context)).toEqual({ kind: "plain", type: "RangeError", message: "too far" });
    expect(failureOfError(new ProtocolError(-32_602, "Invalid params"), context)).toEqual({
      kind: "plain",
      type: "ProtocolError",
      message: "Invalid params",
    });
    expect(failureOfError("words", context)).toEqual({ kind: "plain", type: "Error", message: "words" });
    expect(failureOfError(new ProtocolError(-32_001, "no such order"), context)).toMatchObject({ kind: "plain" });
  });
});

it("a call that exceeds its time limit is a timeout", () => {
  expect(failureOfTimeout("slow", 1_500)).toEqual({
    kind: "toolError",
    toolError: {
      ...rest,
      tool: "slow",
      error_kind: "upstream_http",
      summary: "slow did not answer within 1.5 s.",
      details: [{ path: "", issue: "No answer within 1.5 s.", received_type: "missing" }],
      hints: ["The call may have taken effect. Ask for less at once, or check the state before calling again."],
      error_code: "UPSTREAM_HTTP_TIMEOUT",
      retryable: true,
    },
  });
});

it("anything that a backend sends becomes a valid tool error or a plain failure", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.object({ maxDepth: 4 }),
        fc.string(),
        fc.record({ status: fc.nat({ max: 700 }), headers: fc.object(), message: fc.string() }),
      ),
      (value) => {
        for (const failure of [
          failureOfError(value, context),
          ofResult({ isError: true, structuredContent: value, content: value }),
          ofText(JSON.stringify(value)),
        ]) {
          if (failure?.kind === "toolError")
            expect(parseForeignToolError(failure.toolError) ?? toolErrorSchema.parse(failure.toolError)).not.toBeNull();
          else expect(failure).toEqual({ kind: "plain", type: expect.any(String), message: expect.any(String) });
        }
      },
    ),
  );
});

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createToolError } from "../../errors/tool-error.ts";
import type { ToolErrorCode } from "../../errors/error-table.ts";
import { toFailureResponse, toHttpFailure } from "./http-failure.ts";

function failureOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

test("a database that cannot be written is reported as HISTORY_UNAVAILABLE with a time to retry", async () => {
  using database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE t (x TEXT); PRAGMA query_only = 1");
  const response = toFailureResponse(failureOf(() => database.exec("INSERT INTO t VALUES ('x')")));
  expect([response.status, response.headers.get("retry-after"), await response.json()]).toEqual([
    503,
    "10",
    {
      error: {
        code: "HISTORY_UNAVAILABLE",
        message: "The history cannot be used: attempt to write a readonly database.",
        hint: "Free disk space on the server, or check which process holds the database file. Then try again.",
      },
    },
  ]);
});

test("an unexpected error is reported without its message", async () => {
  const response = toFailureResponse(new Error("/home/user/secret"));
  expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining("secret")]);
});

test.each<[ToolErrorCode, number, string | null]>([
  ["SCHEMA_VALIDATION_FAILED", 400, null],
  ["COLUMN_UNKNOWN", 400, null],
  ["FILTER_VALUE_INVALID", 400, null],
  ["ALIAS_UNKNOWN", 404, null],
  ["PYTHON_SYNTAX_ERROR", 422, null],
  ["DATA_UNREADABLE", 422, null],
  ["PYTHON_TIMEOUT", 422, null],
  ["QUEUE_FULL", 429, "5"],
  ["INTERNAL_ERROR", 500, null],
  ["SANDBOX_UNAVAILABLE", 503, null],
])("a tool error with %s is answered with %i", (code, status, retryAfter) => {
  const response = toFailureResponse(toHttpFailure(createToolError({ code, tool: "t", summary: "s" })));
  expect([response.status, response.headers.get("retry-after")]).toEqual([status, retryAfter]);
});

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { toFailureResponse } from "./http-failure.ts";

function failureOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

test("a database that cannot be written is the server's trouble for a while, and is called by its name", async () => {
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
        hint: "Free space on the server, or look what holds its file; then try again.",
      },
    },
  ]);
});

test("what nobody foresaw is told by its kind alone", async () => {
  const response = toFailureResponse(new Error("/home/somebody/secret"));
  expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining("secret")]);
});

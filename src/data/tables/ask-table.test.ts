import { expect, test } from "vitest";
import type { CellSession } from "../../cells/open-cell-session.ts";
import { askTable } from "./ask-table.ts";

test("a table that is not read in time says what helps with a table, not with a cell", async () => {
  const run = () => Promise.resolve({ status: "timeout", resultJson: null, error: { type: "Timeout", message: "60 s are over" } });
  const session = Promise.resolve({ run } as unknown as CellSession);
  const input = (): never => {
    throw new Error("it is bound already");
  };
  const table = { alias: "sales", format: "csv", path: [], input } as const;
  expect(await askTable({ session, bound: new Set(["sales"]) }, table, { ask: "schema" })).toEqual({
    ok: false,
    refusal: {
      code: "PYTHON_TIMEOUT",
      why: "sales could not be read in time: 60 s are over",
      hints: ["Raise limits.sandbox.cellTimeoutMs, or give the table as Parquet."],
    },
    lost: true,
  });
});

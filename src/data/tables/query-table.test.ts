import { expect, test } from "vitest";
import type { CellSession } from "../../cells/open-cell-session.ts";
import { queryTable } from "./query-table.ts";

test("a timeout while reading a table gives hints for tables, not for cells", async () => {
  const run = () => Promise.resolve({ status: "timeout", resultJson: null, error: { type: "Timeout", message: "60 s are over" } });
  const cellSession = Promise.resolve({ run } as unknown as CellSession);
  const input = (): never => {
    throw new Error("already bound");
  };
  const table = { alias: "sales", format: "csv", path: [], input } as const;
  expect(await queryTable({ cellSession, bound: new Set(["sales"]) }, table, { ask: "schema" })).toEqual({
    ok: false,
    refusal: {
      code: "PYTHON_TIMEOUT",
      why: "Reading sales took too long: 60 s are over",
      hints: ["Raise limits.sandbox.cellTimeoutMs, or convert the table to Parquet."],
    },
    lost: true,
  });
});

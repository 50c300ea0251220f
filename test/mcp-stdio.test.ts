import { describe, expect, test } from "vitest";
import { cell, generations, openStdioClient, textOf } from "./fixtures/mcp-clients.ts";

const HANG_MS = 180_000;

describe.each(generations)("sluice mcp on stdio, with a client of %s", (generation) => {
  test("keeps data that it is given and computes with it", { timeout: HANG_MS }, async () => {
    await using client = await openStdioClient(generation);
    const stored = await client.call("store_data", { name: "prices", data: [{ price: 1 }, { price: 2.5 }] });
    expect(textOf(stored)).toMatchObject({ alias: "prices" });
    const result = await client.call("code_interpreter", cell("set_result(float(to_frame(prices)['price'].sum()))", ["prices"]));
    expect(result.isError).toBeUndefined();
    expect(textOf(result)).toMatchObject({ status: "ok", result: 3.5, resultAlias: "result_1" });
    expect(result.structuredContent).toEqual(textOf(result));
  });
});

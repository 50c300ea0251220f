import { expect, it } from "vitest";
import { createParameterHeaders } from "./backend-connection.ts";

const property = (header: unknown) => ({ type: "string", "x-mcp-header": header });

it("repeats arguments as headers where the schema marks them", () => {
  const schema = {
    type: "object",
    properties: {
      region: property("Region"),
      place: { type: "object", properties: { city: property("City") } },
      count: property("Count"),
      flag: property("Flag"),
      missing: property("Missing"),
      nothing: property("Nothing"),
      list: property("List"),
      bad: property("not a token"),
      plain: { type: "string" },
      huge: property("Huge"),
    },
  };
  const args = {
    region: "eu",
    place: { city: " Köln" },
    count: 3,
    flag: false,
    nothing: null,
    list: [1],
    bad: "x",
    plain: "x",
    huge: 2 ** 60,
  };
  expect(createParameterHeaders(schema, args)).toEqual({
    "Mcp-Param-Region": "eu",
    "Mcp-Param-City": "=?base64?IEvDtmxu?=",
    "Mcp-Param-Count": "3",
    "Mcp-Param-Flag": "false",
  });
});

it("creates no headers for a schema without properties", () => {
  expect(createParameterHeaders({ type: "object" }, { a: 1 })).toEqual({});
});

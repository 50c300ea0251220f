import { expect, it } from "vitest";
import { parseDataUri, toDataUri } from "./create-connection-resources.ts";

it("reads back every address that it writes", () => {
  for (const address of [
    { session: null, alias: "rows_1", offset: 0 },
    { session: null, alias: "größe", offset: 1200 },
    { session: "Ab-_9", alias: "rows_1", offset: 50 },
  ])
    expect(parseDataUri(toDataUri(address))).toEqual(address);
  expect(toDataUri({ session: "Ab-_9", alias: "rows_1", offset: 50 })).toBe("sluice://sessions/Ab-_9/data/rows_1?offset=50");
});

it("takes nothing else for an address", () => {
  for (const uri of [
    "sluice://data/",
    "sluice://data/a/b",
    "sluice://data/a?offset=-1",
    "sluice://data/a?offset=1&x=2",
    "sluice://sessions//data/a",
    "sluice://data/%E0%A4%A",
    "file:///data/a",
  ])
    expect(parseDataUri(uri)).toBeNull();
});

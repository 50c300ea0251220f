import { expect, test } from "vitest";
import { createLog, takeConsole } from "./create-log.ts";

test("what libraries print is in the log, without secrets", () => {
  const lines: unknown[] = [];
  const target = Object.create(console) as Console;
  takeConsole(target, createLog({ level: "debug", format: "json", write: (line) => lines.push(JSON.parse(line)), now: () => new Date(0) }));
  target.info("The user aborted a request.");
  target.error("%s failed with Authorization: Bearer abcdefghijklmnop1234", "It");
  const time = "1970-01-01T00:00:00.000Z";
  expect(lines).toEqual([
    { time, level: "debug", event: "printed", text: "The user aborted a request." },
    { time, level: "error", event: "printed", text: expect.not.stringContaining("abcdefghijklmnop1234") as string },
  ]);
});

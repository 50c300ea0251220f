import { expect, test } from "vitest";
import { createLog, redirectConsole } from "./create-log.ts";

const now = (): Date => new Date("2026-01-02T03:04:05.000Z");

function lines(format: "json" | "text", level: "info" | "debug" = "info"): { log: ReturnType<typeof createLog>; written: string[] } {
  const written: string[] = [];
  return { written, log: createLog({ level, format, now, write: (line) => written.push(line) }) };
}

test("writes one JSON object per line and skips levels below the configured one", () => {
  const { log, written } = lines("json");
  log.info("listening", { port: 1, host: undefined });
  log.debug("request", {});
  expect(written).toEqual(['{"time":"2026-01-02T03:04:05.000Z","level":"info","event":"listening","port":1}\n']);
});

test("escapes line breaks and control characters in text lines", () => {
  const { log, written } = lines("text");
  log.warn("odd", { reason: "a\n\u001b[31mred\u009b", path: "/api/x" });
  expect(written).toEqual(['03:04:05 warn  odd reason="a\\n\\u001b[31mred\\u009b" path=/api/x\n']);
});

test("removes credentials from every value", () => {
  const { log, written } = lines("json");
  log.error("failed", { reason: "sent Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123 to it" });
  expect(written[0]).not.toContain("abcdefghij");
});

test("logs what libraries print to the console, without secrets", () => {
  const lines: unknown[] = [];
  const target = Object.create(console) as Console;
  redirectConsole(
    target,
    createLog({ level: "debug", format: "json", write: (line) => lines.push(JSON.parse(line)), now: () => new Date(0) }),
  );
  target.info("The user aborted a request.");
  target.error("%s failed with Authorization: Bearer abcdefghijklmnop1234", "It");
  const time = "1970-01-01T00:00:00.000Z";
  expect(lines).toEqual([
    { time, level: "debug", event: "printed", text: "The user aborted a request." },
    { time, level: "error", event: "printed", text: expect.not.stringContaining("abcdefghijklmnop1234") as string },
  ]);
});

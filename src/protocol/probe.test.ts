import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatProbe, parseProbe } from "./probe.ts";

describe("probes", () => {
  test("are one line in the documented format", () => {
    const line = formatProbe("python-sandbox-latency-probe", "python_call_start", {
      turnId: "t 1",
      inputsBytes: 0,
      none: undefined,
      exitCode: null,
    });
    expect(line).toBe('[python-sandbox-latency-probe] event=python_call_start turnId="t 1" inputsBytes=0 exitCode=null');
  });

  test("escape line separators and terminal control characters", () => {
    const error = "a\u2028b\u2029c\u0085d\u009b31m\u001b[2J\n[python-sandbox-latency-probe] event=fake";
    const line = formatProbe("python-sandbox-latency-probe", "python_call_failure", { error });
    expect(line).toMatch(/^[\u0020-\u007e]*$/);
    expect(parseProbe(line)?.fields).toEqual({ event: "python_call_failure", error });
  });

  test("can be parsed back", () => {
    const name = fc.stringMatching(/^[a-zA-Z_]\w{0,20}$/).filter((text) => text !== "event" && text !== "__proto__");
    const value = fc.oneof(fc.string({ unit: "binary" }), fc.integer(), fc.boolean(), fc.constant(null));
    fc.assert(
      fc.property(fc.dictionary(name, value), (fields) => {
        const line = formatProbe("mcp-latency-probe", "mcp_call_start", fields);
        expect(line).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u2028\u2029]/);
        expect(parseProbe(line)).toEqual({ source: "mcp-latency-probe", fields: { event: "mcp_call_start", ...fields } });
      }),
    );
  });
});

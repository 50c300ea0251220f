import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatProbe, parseProbe } from "./probe.ts";

describe("probes", () => {
  test("are one line in the documented form", () => {
    const line = formatProbe("python-sandbox-latency-probe", "python_call_start", {
      turnId: "t 1",
      inputsBytes: 0,
      none: undefined,
      exitCode: null,
    });
    expect(line).toBe('[python-sandbox-latency-probe] event=python_call_start turnId="t 1" inputsBytes=0 exitCode=null');
  });

  test("any line can be parsed back", () => {
    const name = fc.stringMatching(/^[a-zA-Z_]\w{0,20}$/).filter((text) => text !== "event" && text !== "__proto__");
    const value = fc.oneof(fc.string({ unit: "binary" }), fc.integer(), fc.boolean(), fc.constant(null));
    fc.assert(
      fc.property(fc.dictionary(name, value), (fields) => {
        const line = formatProbe("mcp-latency-probe", "mcp_call_start", fields);
        expect(line).not.toMatch(/[\n\r]/);
        expect(parseProbe(line)).toEqual({ source: "mcp-latency-probe", fields: { event: "mcp_call_start", ...fields } });
      }),
    );
  });
});

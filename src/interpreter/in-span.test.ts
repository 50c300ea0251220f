import { trace } from "@opentelemetry/api";
import { afterEach, describe, expect, it, vi } from "vitest";
import { inSpan } from "./in-span.ts";

afterEach(() => trace.disable());

describe("inSpan", () => {
  it("records nothing if no provider is registered", async () => {
    const used = new Set<unknown>();
    const tracers = vi.spyOn(trace, "getTracer");
    for (const name of ["sluice.code_interpreter", "sluice.render_chart"]) {
      const answer = await inSpan(name, { "sluice.turn": "turn-1" }, async (span) => {
        span.set({ "sluice.status": "ok" });
        span.fail("PYTHON_ERROR");
        used.add(trace.getActiveSpan());
        return name;
      });
      expect(answer).toBe(name);
    }
    expect([...used]).toEqual([undefined]);
    for (const { value } of tracers.mock.results) {
      const span = (value as ReturnType<typeof trace.getTracer>).startSpan("any");
      expect([span.isRecording(), span.spanContext()]).toEqual([false, { traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 }]);
    }
    tracers.mockRestore();
  });

  it("passes a failure through unchanged, with and without a provider", async () => {
    const cause = new Error("enough");
    const fail = async (): Promise<never> => await inSpan("sluice.any", {}, () => Promise.reject(cause));
    await expect(fail()).rejects.toBe(cause);
    const recorded: unknown[] = [];
    const span = { setAttributes: () => {}, setStatus: (status: unknown) => recorded.push(status), end: () => recorded.push("ended") };
    const startActiveSpan = (_name: string, _options: unknown, work: (given: unknown) => unknown): unknown => work(span);
    trace.setGlobalTracerProvider({ getTracer: () => ({ startActiveSpan }) } as never);
    await expect(fail()).rejects.toBe(cause);
    expect(recorded).toEqual([{ code: 2, message: "enough" }, "ended"]);
  });
});

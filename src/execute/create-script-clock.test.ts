import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createScriptClock } from "./create-script-clock.ts";

describe("the clock of a script", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function create(cpuMs: () => number = () => 0) {
    const over: string[] = [];
    const clock = createScriptClock({
      limits: { executionMs: 1_000, totalMs: 10_000 },
      cpuMs: async () => cpuMs(),
      onOver: (limit) => over.push(limit),
    });
    return { clock, over };
  }

  it("reports the computing limit once the script has computed for that long", async () => {
    const { clock, over } = create();
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toEqual(["executionMs"]);
    expect(clock.executionMs()).toBe(1_000);
  });

  it("does not count computing time while paused", async () => {
    const { clock, over } = create();
    await vi.advanceTimersByTimeAsync(400);
    clock.pause();
    await vi.advanceTimersByTimeAsync(5_000);
    expect([clock.executionMs(), over]).toEqual([400, []]);
    clock.resume();
    await vi.advanceTimersByTimeAsync(599);
    expect(over).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toEqual(["executionMs"]);
  });

  it("counts CPU time of the sandbox while paused", async () => {
    const { clock, over } = create(() => performance.now());
    clock.pause();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(over).toEqual(["executionMs"]);
    expect(clock.executionMs()).toBeGreaterThanOrEqual(1_000);
  });

  it("reports the total limit, paused or not", async () => {
    const { clock, over } = create();
    clock.pause();
    await vi.advanceTimersByTimeAsync(9_999);
    expect(over).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toEqual(["totalMs"]);
  });

  it("reports nothing after it was stopped, and leaves no timer", async () => {
    const { clock, over } = create();
    clock[Symbol.dispose]();
    clock.resume();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(over).toEqual([]);
  });
});

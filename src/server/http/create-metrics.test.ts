import { expect, test } from "vitest";
import { createBlockReader, createRegistry } from "./create-metrics.ts";

test("writes counters, gauges and histograms in the Prometheus text format", () => {
  const registry = createRegistry();
  const calls = registry.counter("calls_total", "Calls.");
  calls.add(1, { cause: 'a "b"\n' });
  calls.add(2, { cause: "ok" });
  calls.add(1, { cause: "ok" });
  registry.gauge("alive", "Now.", () => 3);
  const took = registry.histogram("took_seconds", "How long.", [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) took.observe(value);
  expect(registry.toText()).toBe(
    [
      "# HELP calls_total Calls.",
      "# TYPE calls_total counter",
      'calls_total{cause="a \\"b\\"\\n"} 1',
      'calls_total{cause="ok"} 3',
      "# HELP alive Now.",
      "# TYPE alive gauge",
      "alive 3",
      "# HELP took_seconds How long.",
      "# TYPE took_seconds histogram",
      'took_seconds_bucket{le="0.1"} 2',
      'took_seconds_bucket{le="1"} 3',
      'took_seconds_bucket{le="+Inf"} 4',
      "took_seconds_sum 7.65",
      "took_seconds_count 4",
      "",
    ].join("\n"),
  );
  expect(calls.values()).toEqual({ 'a "b"\n': 1, ok: 3 });
});

test("reports the longest block of the event loop since the last reading", async () => {
  const readSeconds = createBlockReader();
  const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 30));
  await tick();
  readSeconds();
  await tick(); // a reading forgets when the last tick was
  const end = performance.now() + 200;
  while (performance.now() < end); // blocks
  await tick();
  expect(readSeconds()).toBeGreaterThan(0.15);
  expect(readSeconds()).toBe(0);
});

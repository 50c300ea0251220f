import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatExact, formatTick } from "../../web/charts/format-value.ts";
import { innerTicks, niceTicks } from "../../web/charts/nice-ticks.ts";
import { readTime } from "../../web/charts/read-time.ts";
import { stack } from "../../web/charts/stack.ts";
import { formatTimeTick, timeTicks } from "../../web/charts/time-ticks.ts";
import { toPlot } from "../../web/charts/to-plot.ts";
import { parseExact } from "../../web/page/api/parse-exact.ts";
import { formatBytes, formatDuration } from "../../web/page/format.ts";
import { toCsv } from "../../web/page/panel/to-csv.ts";
import { highlightPython, toLines } from "../../web/page/turn/highlight-python.ts";

/** How the page formats numbers and text. */
describe("numbers of the page", () => {
  it("have round, rising ticks that enclose their range", () => {
    expect(niceTicks(0, 9.3)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(niceTicks(-0.03, 0.12)).toEqual([-0.05, 0, 0.05, 0.1, 0.15]);
    expect(niceTicks(0, 3, { smallest: 1 })).toEqual([0, 1, 2, 3]);
    expect(innerTicks(100_000, 1_900_000, 3)).toEqual([500_000, 1_000_000, 1_500_000]);
    fc.assert(
      fc.property(fc.double({ min: -1e12, max: 1e12, noNaN: true }), fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (from, width) => {
        fc.pre(width > Math.abs(from) * 1e-9); // what a double can still distinguish
        const ticks = niceTicks(from, from + width);
        const isRising = ticks.every((tick, index) => index === 0 || tick > (ticks[index - 1] ?? tick));
        const slack = width * 1e-6 + Math.abs(from) * 1e-9;
        return isRising && (ticks[0] ?? 0) <= from + slack && (ticks.at(-1) ?? 0) >= from + width - slack && ticks.length < 20;
      }),
    );
  });

  it("have time ticks at natural boundaries", () => {
    const at = (text: string): number => Date.parse(`${text}Z`);
    expect(timeTicks(at("2024-01-01T00:00"), at("2024-12-30T00:00"), 6).map((tick) => new Date(tick).toISOString().slice(0, 10))).toEqual([
      "2024-01-01",
      "2024-03-01",
      "2024-05-01",
      "2024-07-01",
      "2024-09-01",
      "2024-11-01",
    ]);
    expect(timeTicks(at("2024-01-01T09:03"), at("2024-01-01T11:58"), 6).map((tick) => formatTimeTick(tick, 30 * 60_000))).toEqual([
      "09:30",
      "10:00",
      "10:30",
      "11:00",
      "11:30",
    ]);
    expect(formatTimeTick(at("2025-01-01T00:00"), 30 * 86_400_000)).toBe("2025");
    expect(readTime("2024-03-01T12:00:00+02:00")).toBe(at("2024-03-01T10:00"));
    expect(readTime("2024-03")).toBe(at("2024-03-01T00:00"));
  });

  it("are exact, and short where there is little space", () => {
    expect(formatExact(1785306.123456789)).toBe("1,785,306.123456789");
    expect(formatExact(0.07, { format: "percent" })).toBe("7%");
    expect(formatExact(12.5, { format: "percent", valueScale: "percent_points" })).toBe("12.5%");
    expect(formatExact(63514.76, { format: "currency", currency: "EUR" })).toBe("€63,514.76");
    expect(formatExact(3.2e-12)).toBe("3.2e-12");
    expect([formatTick(20_000, { format: "compact" }), formatTick(25_000_000, undefined), formatTick(0.25, undefined)]).toEqual([
      "20K",
      "25M",
      "0.25",
    ]);
    expect([formatBytes(999), formatBytes(2_137_090), formatDuration(18_400), formatDuration(61_000)]).toEqual([
      "999 B",
      "2.1 MB",
      "18 s",
      "1 min 1 s",
    ]);
    expect(parseExact('{"a": 9007199254740993, "b": 1.5, "c": [12]}')).toEqual({ a: "9007199254740993", b: 1.5, c: [12] });
  });

  it("stack positive values upward and negative ones downward, and leave gaps", () => {
    const plot = toPlot({ type: "bar", xKey: "x", stacked: true, series: [{ key: "a" }, { key: "b" }] }, [
      { x: "p", a: 2, b: 3 },
      { x: "q", a: -1, b: null },
      { x: "r", a: -1, b: -4 },
    ]);
    expect(stack(plot, plot.series).map(({ from, to }) => ({ from, to }))).toEqual([
      { from: [0, 0, 0], to: [2, -1, -1] },
      { from: [2, null, -1], to: [5, null, -5] },
    ]);
  });

  it("are written to CSV that no spreadsheet executes", () => {
    const columns = ["a", "b"].map((key) => ({ key, label: key }));
    expect(
      toCsv({
        columns,
        rows: [
          { a: "=1+1", b: -2 },
          { a: 'x "y", z', b: null },
        ],
      }),
    ).toBe('a,b\r\n\'=1+1,-2\r\n"x ""y"", z",\r\n');
  });

  it("highlighting Python does not change a letter of it", () => {
    expect(highlightPython('x = f"{a}"  # why\nfor i in range(3): pass').filter(({ kind }) => kind !== "plain")).toEqual([
      { kind: "string", text: 'f"{a}"' },
      { kind: "comment", text: "# why" },
      { kind: "keyword", text: "for" },
      { kind: "keyword", text: "in" },
      { kind: "builtin", text: "range" },
      { kind: "number", text: "3" },
      { kind: "keyword", text: "pass" },
    ]);
    const pieces = fc.constantFrom('"""', "'", '"', "#", "\n", "def ", "x", " ", "1.5e3", "\\", "é", "(", "rb'");
    fc.assert(
      fc.property(
        fc.array(pieces).map((list) => list.join("")),
        (code) => {
          const tokens = highlightPython(code);
          return tokens.map(({ text }) => text).join("") === code && toLines(tokens).length === code.split("\n").length;
        },
      ),
    );
  });
});

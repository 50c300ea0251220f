import { usePlotArea } from "recharts";
import { xPlace } from "../domains.ts";
import type { Plot } from "../plot.ts";
import { useScales } from "./scales.ts";

interface Word {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly anchor: "start" | "end";
}

const letter = 6.1;
const lineHeight = 13;

/** Draws the labels of reference lines and areas in rows, so that they do not overlap. */
export function ReferenceWords({ plot }: { plot: Plot }) {
  const area = usePlotArea();
  const [left, right] = [useScales("left"), useScales("right")];
  const any = left ?? right;
  if (!area || !any) return null;
  const upright = [
    ...(plot.spec.referenceLines ?? []).flatMap(({ axis, value, label }) => (axis === "x" ? [{ at: xPlace(plot, value), label }] : [])),
    ...(plot.spec.referenceAreas ?? []).map(({ x1, x2, label }) => ({
      at: x1 === undefined || x2 === undefined ? null : xPlace(plot, x1),
      label,
    })),
  ].flatMap(({ at, label }) => (at === null || !label ? [] : [{ x: any.x(at), text: label }]));
  const flat = [
    ...(plot.spec.referenceLines ?? []).flatMap(({ axis, value, label }) => {
      const scale = axis === "y" ? left : axis === "yRight" ? right : null;
      return scale && label && typeof value === "number" ? [{ y: scale.y(value), text: label }] : [];
    }),
    ...(plot.spec.referenceAreas ?? []).flatMap(({ x1, y2, y1, label }) =>
      left && label && x1 === undefined && y1 !== undefined && y2 !== undefined
        ? [{ y: left.y(Math.max(y1, y2)) + lineHeight + 1, text: label }]
        : [],
    ),
  ].map(({ y, text }): Word => ({ text, y: y - 4, x: area.x + area.width - 4, anchor: "end" }));
  const words = [
    ...inRows(
      upright.filter(({ x }) => x >= area.x && x <= area.x + area.width),
      area,
    ),
    ...flat,
  ];
  return (
    <g>
      {words.map(({ text, x, y, anchor }) => (
        <g key={`${text} ${x} ${y}`}>
          <rect
            x={anchor === "end" ? x - text.length * letter - 2 : x - 2}
            y={y - 10}
            width={text.length * letter + 4}
            height={lineHeight}
            className="chart-reference-ground"
          />
          <text x={x} y={y} textAnchor={anchor} className="chart-reference-text">
            {text}
          </text>
        </g>
      ))}
    </g>
  );
}

/** Places labels from left to right, each in the first row with room. A label that would leave the plot goes to the left of its line. */
function inRows(words: readonly { x: number; text: string }[], area: { x: number; y: number; width: number }): Word[] {
  const taken: [from: number, to: number][][] = [];
  return [...words]
    .sort((a, b) => a.x - b.x)
    .map(({ x, text }) => {
      const width = text.length * letter;
      const anchor = x + 4 + width > area.x + area.width ? "end" : "start";
      const [from, to] = anchor === "start" ? [x + 4, x + 4 + width] : [x - 4 - width, x - 4];
      let row = 0;
      while ((taken[row] ?? []).some(([start, end]) => from < end + 6 && to > start - 6)) row += 1;
      taken[row] = [...(taken[row] ?? []), [from, to]];
      return { text, anchor, x: anchor === "start" ? x + 4 : x - 4, y: area.y + lineHeight + row * lineHeight };
    });
}

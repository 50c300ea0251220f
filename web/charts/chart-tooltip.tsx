import type { Reading } from "./readings.ts";
import { useLayoutEffect, useRef, useState } from "react";

interface ChartTooltipProps {
  readonly title: string;
  readonly items: readonly Reading[];
  readonly x: number;
  readonly y: number;
  /** The target was moved by a key, so screen readers announce it. */
  readonly isSpoken: boolean;
}

const maxItems = 12;

/** The exact values at one position, shown beside it and inside the chart. */
export function ChartTooltip({ title, items, x, y, isSpoken }: ChartTooltipProps) {
  const box = useRef<HTMLDivElement>(null);
  const [left, setLeft] = useState(x + 12);
  useLayoutEffect(() => {
    const [own, room] = [box.current?.offsetWidth ?? 0, box.current?.parentElement?.offsetWidth ?? 0];
    setLeft(x + 12 + own <= room ? x + 12 : Math.max(0, x - 12 - own));
  }, [x, title, items]);
  return (
    <div ref={box} className="chart-tooltip" style={{ left, top: y + 4 }} role="status" aria-live={isSpoken ? "polite" : "off"}>
      <strong>{title}</strong>
      <table>
        <tbody>
          {items.slice(0, maxItems).map(({ label, text, colour }) => (
            <tr key={label}>
              <th scope="row">
                {colour !== undefined && <span className="chart-swatch" style={{ background: colour }} />}
                {label}
              </th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {items.length > maxItems && <span>+{items.length - maxItems}</span>}
    </div>
  );
}

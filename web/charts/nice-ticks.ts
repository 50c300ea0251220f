/** About `count` round numbers that enclose `min` and `max`. */
export function niceTicks(min: number, max: number, { count = 5, smallest = 0 }: { count?: number; smallest?: number } = {}): number[] {
  if (!Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (min === max) return min === 0 ? [0, 1] : niceTicks(Math.min(min, 0), Math.max(max, 0), { count, smallest });
  const step = Math.max(smallest, niceStep((max - min) / count));
  const [first, last] = [Math.floor(min / step + 1e-9), Math.ceil(max / step - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_none, index) => clean((first + index) * step, step));
}

/** About `count` round numbers between `min` and `max`, at least three. */
export function innerTicks(min: number, max: number, count = 6): number[] {
  if (min === max) return [min];
  const inside = niceTicks(min, max, { count }).filter((tick) => tick >= min && tick <= max);
  return inside.length >= 3 || count > 12 ? inside : innerTicks(min, max, count + 1);
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = rough / power;
  return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 2.5 ? 2.5 : factor <= 5 ? 5 : 10);
}

/** Rounds to one decimal more than the step has, so that 0.30000000000000004 becomes 0.3. */
function clean(value: number, step: number): number {
  const decimals = Math.min(100, Math.max(0, 1 - Math.floor(Math.log10(step))));
  return Number(value.toFixed(decimals));
}

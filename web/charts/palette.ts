/** Eight colours that people with any kind of colour vision can tell apart, in light and dark; theme.css has the values. After eight series, lines are dashed. */
export const colourCount = 8;

export function colourOf(index: number): string {
  return `var(--series-${(index % colourCount) + 1})`;
}

export function dashOf(index: number): string | undefined {
  return [undefined, "6 3", "2 3", "8 3 2 3"][Math.floor(index / colourCount) % 4];
}

/** Cividis: from dark blue to yellow, even in lightness. */
const sequential = [
  [0, 32, 76],
  [49, 68, 107],
  [102, 105, 112],
  [146, 140, 118],
  [195, 178, 104],
  [253, 231, 70],
] as const;

/** Blue below zero, orange above. */
const diverging = [
  [20, 84, 142],
  [104, 160, 205],
  [238, 238, 234],
  [229, 152, 91],
  [160, 68, 12],
] as const;

/** Colour of a value between `min` and `max`. When zero lies between them, zero is the pale middle. */
export function heatColour(value: number, min: number, max: number): string {
  if (min < 0 && max > 0) return mix(diverging, 0.5 + value / (2 * Math.max(-min, max)));
  return mix(sequential, max === min ? 0.5 : (value - min) / (max - min));
}

function mix(stops: readonly (readonly [number, number, number])[], share: number): string {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const index = Math.min(stops.length - 2, Math.floor(at));
  const [low, high] = [stops[index], stops[index + 1]];
  if (!low || !high) return "gray";
  const part = (channel: 0 | 1 | 2): number => Math.round(low[channel] + (high[channel] - low[channel]) * (at - index));
  return `rgb(${part(0)}, ${part(1)}, ${part(2)})`;
}

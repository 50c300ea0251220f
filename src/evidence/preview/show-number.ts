/** A number as a preview shows it: one that may have lost digits on the way is text with a tilde, so that nobody takes it for exact. */
export function showNumber(value: number): number | string {
  if (!Number.isFinite(value)) return `~${value}`;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? `~${value}` : value;
}

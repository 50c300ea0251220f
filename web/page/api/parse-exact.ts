/** Parses JSON and keeps the digits of integers that a JavaScript number cannot hold. */
export function parseExact(text: string): unknown {
  return JSON.parse(text, function (this: unknown, _key: string, value: unknown, context?: { source?: string }) {
    const isInexact = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
    return isInexact && context?.source !== undefined && /^-?\d+$/.test(context.source) ? context.source : value;
  } as (key: string, value: unknown) => unknown);
}

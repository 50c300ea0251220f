/** The type of a value in JSON's words; `missing` for what is not there. */
export function receivedType(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

import { quote } from "./argument-path.ts";
import { receivedType } from "./received-type.ts";

/** A value that was sent, in few words: itself where it is short, else its type. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return value.length <= 80 ? quote(value) : "a long string";
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  const type = receivedType(value);
  return type === "missing" ? "nothing" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`;
}

import { z } from "zod";

const PIECE = 1_000;

/**
 * Whether a value matches a schema. `safeParse` alone collects every problem: for a hostile list with a million wrong entries, that takes seconds and
 * hundreds of megabytes. So long lists are checked in pieces first, up to the first wrong piece.
 */
export function matchesSchema(schema: z.core.$ZodType, value: unknown): boolean {
  return hasValidPieces(schema, value) && z.safeParse(schema, value).success;
}

function hasValidPieces(schema: z.core.$ZodType, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true; // if that is wrong, the whole schema reports it
  if (schema instanceof z.ZodOptional) return hasValidPieces(schema.def.innerType, value);
  if (schema instanceof z.ZodArray) return !Array.isArray(value) || isValidInPieces(schema.def.element, value);
  if (schema instanceof z.ZodRecord) return isValidInPieces(schema.def.valueType, Object.values(value));
  if (!(schema instanceof z.ZodObject)) return true;
  return Object.entries(schema.def.shape).every(([key, part]) => hasValidPieces(part, (value as Record<string, unknown>)[key]));
}

function isValidInPieces(item: z.core.$ZodType, items: readonly unknown[]): boolean {
  const piece = z.array(item);
  for (let start = 0; start < items.length; start += PIECE) {
    const some = items.slice(start, start + PIECE);
    if (!some.every((one) => hasValidPieces(item, one)) || !piece.safeParse(some).success) return false;
  }
  return true;
}

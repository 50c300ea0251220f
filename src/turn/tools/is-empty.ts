import type { EvidenceItem } from "../../evidence/contract.ts";

/** Nothing in it: no rows, no text, null, `{}`. */
export function isEmpty({ shape, bytes, attachments, read, format }: EvidenceItem): boolean {
  if (attachments.length > 0) return false;
  if (shape.rows !== null) return shape.rows === 0;
  if (bytes > 64 || (format !== "json" && format !== "text")) return bytes === 0;
  return ["", "null", "{}", '""'].includes(new TextDecoder().decode(read()).trim());
}

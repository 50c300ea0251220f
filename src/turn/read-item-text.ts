import type { EvidenceItem } from "../evidence/contract.ts";

/** Null when what was kept cannot be read any more: by another process, long ago, in a file that is gone. */
export function readItemText(item: EvidenceItem): string | null {
  try {
    return new TextDecoder().decode(item.read());
  } catch {
    return null;
  }
}

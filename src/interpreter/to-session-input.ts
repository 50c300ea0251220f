import type { EvidenceItem } from "../evidence/contract.ts";
import type { SessionInput } from "./session-inputs.ts";

/**
 * One output as a session takes it. The bytes of a file are read when they are shipped and not held after: a session that lives on beside 200 MB on a
 * disk does not keep them in memory too.
 */
export function toSessionInput(item: EvidenceItem): SessionInput {
  if (item.file === undefined) return { format: item.format, bytes: item.read() };
  const { file } = item;
  let held: WeakRef<Uint8Array> | null = null;
  return {
    format: item.format,
    size: item.bytes,
    version: () => file.version(),
    get bytes() {
      const bytes = held?.deref() ?? item.read();
      held = new WeakRef(bytes);
      return bytes;
    },
  };
}

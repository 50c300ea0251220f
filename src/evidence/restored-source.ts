import type { EvidenceItem } from "./contract.ts";
import type { EvidenceRecord } from "./evidence-record.ts";
import type { OutputPart } from "./output-part.ts";
import type { PreviewSource } from "./preview/build-preview.ts";
import { digest, type Digest } from "./preview/digest.ts";
import { readData } from "./read-data.ts";

/** An item of a conversation that goes on, and how its bytes are read where they were put. */
export interface RestoredItem {
  readonly record: EvidenceRecord;
  /** Called when the bytes are needed and not before: by a preview, by Python, by a dataset. */
  read(): Uint8Array;
}

/** Nothing of it is read before it is asked for: a conversation with much evidence opens at once. */
export function toRestoredSource({ record, read }: RestoredItem, tenant: string): PreviewSource {
  const { schemaVersion: _, ...facts } = record;
  const item = { ...facts, arguments: facts.arguments ?? null, tenant, read } as EvidenceItem;
  let part: OutputPart | undefined;
  let made: Digest | undefined;
  const readPart = (): OutputPart => (part ??= readData({ format: item.format, bytes: read() }));
  return {
    item,
    get digest() {
      made ??= digest(readPart());
      return made;
    },
    get isStrictJson() {
      return item.format === "json" && readPart().isStrictJson === true;
    },
  };
}

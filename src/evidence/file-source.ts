import type { EvidenceFormat, EvidenceItem, FileContent } from "./contract.ts";
import type { PreviewSource } from "./preview/build-preview.ts";
import { digestKnown } from "./preview/digest.ts";

interface FileFacts {
  readonly alias: string;
  readonly tenant: string;
  readonly name: string;
  readonly format: EvidenceFormat;
  readonly content: FileContent;
  readonly at: string;
}

/** A file as evidence. Everything about its bytes is asked of the file when it is asked for. */
export function toFileSource({ alias, tenant, name, format, content, at }: FileFacts): PreviewSource {
  const item: EvidenceItem = {
    alias,
    tenant,
    source: "data",
    tool: name,
    arguments: null,
    at,
    get sha256() {
      return content.sha256;
    },
    get bytes() {
      return content.bytes;
    },
    format,
    get shape() {
      return content.shape;
    },
    attachments: [],
    file: content,
    read: () => content.read(),
  };
  return {
    item,
    get digest() {
      return digestKnown(content.shape, content.schema);
    },
    isStrictJson: false,
  };
}

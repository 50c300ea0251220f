import type { ContentBlock } from "@modelcontextprotocol/server";
import type { ImageArtifact } from "../../../protocol/artifact.ts";

export interface PublishedImage {
  readonly artifact: ImageArtifact;
  readonly bytes: Uint8Array;
}

/** What pictures may add to one result. Clients refuse results of some megabytes whole, and a model would see nothing then. */
const INLINE_BYTES = 750_000;

/** Pictures with their alt, as long as they fit; the others as links to where they can be read. */
export function toImageContent(images: readonly PublishedImage[]): ContentBlock[] {
  let room = INLINE_BYTES;
  return images.map(({ artifact, bytes }): ContentBlock => {
    if (bytes.length > room) return toLink(artifact, bytes.length);
    room -= bytes.length;
    return toInline(artifact, bytes);
  });
}

function toInline({ alt, url, title }: ImageArtifact, bytes: Uint8Array): ContentBlock {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { type: "image", data, mimeType: "image/png", _meta: { alt, url, ...(title === undefined ? {} : { title }) } };
}

function toLink({ alt, url, title, contentHash }: ImageArtifact, size: number): ContentBlock {
  return {
    type: "resource_link",
    uri: url,
    name: `${contentHash}.png`,
    title: title ?? alt,
    description: `${alt} (${size} bytes, too large to be shown here: read the resource)`,
    mimeType: "image/png",
    size,
  };
}

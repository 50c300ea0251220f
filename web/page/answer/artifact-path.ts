import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";

/** URL of an artifact on this server. Built from the hash, not from the url in the message, so that it cannot point elsewhere. */
export function artifactPath({ kind, contentHash }: Pick<ArtifactReference, "kind" | "contentHash">): string {
  return `/artifacts/${/^[0-9a-f]{64}$/.test(contentHash) ? contentHash : "0"}.${kind === "image" ? "png" : "json"}`;
}

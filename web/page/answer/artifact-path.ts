import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";

/** Where the server has it. Made from the hash, not from the url that came with it, so that it can point nowhere else. */
export function artifactPath({ kind, contentHash }: Pick<ArtifactEnvelope, "kind" | "contentHash">): string {
  return `/artifacts/${/^[0-9a-f]{64}$/.test(contentHash) ? contentHash : "0"}.${kind === "image" ? "png" : "json"}`;
}

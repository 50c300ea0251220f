import { useMemo, useRef } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";

/**
 * The same artifacts as the same objects. A message that streams is copied whole at each piece of it; what a hash names never changes, so that a chart of
 * thousands of points need not be drawn again for every word of the answer.
 */
export function useStableArtifacts(artifacts: readonly ArtifactEnvelope[]): readonly ArtifactEnvelope[] {
  const known = useRef(new Map<string, ArtifactEnvelope>());
  const hashes = artifacts.map(({ contentHash }) => contentHash).join(" ");
  return useMemo(
    () =>
      artifacts.map((artifact) => {
        const first = known.current.get(artifact.contentHash) ?? artifact;
        known.current.set(artifact.contentHash, first);
        return first;
      }),
    // The hashes say all that there is to say about them.
    [hashes],
  );
}

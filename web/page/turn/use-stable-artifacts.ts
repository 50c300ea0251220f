import { useMemo, useRef } from "react";
import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";

/**
 * Returns the same objects for the same artifacts. A streaming message is copied at every update; without this, a chart of
 * thousands of points would be drawn again for every word of the answer.
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
    // The hashes identify the artifacts completely.
    [hashes],
  );
}

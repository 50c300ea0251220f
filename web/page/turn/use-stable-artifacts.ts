import { useMemo, useRef } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";

/**
 * Returns the same objects for the same artifacts. A streaming message is copied at every update; without this, all charts would be drawn again for every
 * word of the answer.
 */
export function useStableArtifacts(artifacts: readonly ArtifactReference[]): readonly ArtifactReference[] {
  const known = useRef(new Map<string, ArtifactReference>());
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

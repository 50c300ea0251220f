import type { ArtifactStore } from "../artifacts/contract.ts";
import type { ArtifactEnvelope } from "../protocol/artifact.ts";
import type { CellArtifact } from "../protocol/outcome.ts";

/** Keeps the artifacts of a cell that counted. They were checked when they came; here they get their address. */
export async function publishArtifacts(artifacts: readonly CellArtifact[], store: ArtifactStore): Promise<ArtifactEnvelope[]> {
  return await Promise.all(
    artifacts.map(async (artifact): Promise<ArtifactEnvelope> => {
      const title = artifact.title === undefined ? {} : { title: artifact.title };
      if (artifact.kind === "chart") {
        const { url, contentHash } = await store.put({ bytes: artifact.bytes, type: "json" });
        return { schemaVersion: 1, kind: "chart", url, spec: artifact.spec, data: artifact.data, ...title, contentHash };
      }
      const { url, contentHash, bytes } = await store.put({ bytes: artifact.bytes, type: "png" });
      const { alt, width, height, figure } = artifact;
      return { schemaVersion: 1, kind: "image", url, alt, ...title, contentHash, bytes, width, height, ...(figure && { figure }) };
    }),
  );
}

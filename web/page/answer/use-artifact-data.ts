import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { ChartRow, ChartSpec } from "../../../src/protocol/chart-spec.ts";
import type { Figure } from "../../../src/protocol/figure.ts";
import { server } from "../api/server.ts";
import { useLoaded, type Loaded } from "../data/use-loaded.ts";

/** What a reference leaves out. The figure is null where the picture could not be read. */
export type ArtifactData =
  | { readonly kind: "chart"; readonly spec: ChartSpec; readonly data: readonly ChartRow[] }
  | { readonly kind: "image"; readonly figure: Figure | null };

const maxKept = 40;
/** Several parts of the page show the same artifact, whose data never change. */
const kept = new Map<string, Promise<ArtifactData>>();

/** Loads the data behind a picture, or the spec and the rows of a chart. */
export function useArtifactData(artifact: ArtifactReference): Loaded<ArtifactData> {
  const [data] = useLoaded(() => load(artifact), [artifact.contentHash]);
  return data;
}

function load(artifact: ArtifactReference): Promise<ArtifactData> {
  const { contentHash } = artifact;
  const known = kept.get(contentHash);
  if (known) return known;
  const loading = read(artifact);
  kept.set(contentHash, loading);
  loading.catch(() => kept.delete(contentHash));
  if (kept.size > maxKept) kept.delete(kept.keys().next().value ?? "");
  return loading;
}

async function read({ kind, contentHash, figureData }: ArtifactReference): Promise<ArtifactData> {
  if (kind === "chart") return { kind, ...(await server.chart(contentHash)) };
  return { kind, figure: figureData === undefined ? null : await server.figure(figureData.contentHash) };
}

import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";

/** What the panel shows. */
export type PanelTarget =
  | { readonly kind: "artifact"; readonly turnId: string; readonly artifact: ArtifactEnvelope; readonly all: readonly ArtifactEnvelope[] }
  | { readonly kind: "data"; readonly alias: string };

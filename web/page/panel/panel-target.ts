import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";

/** What the panel shows. */
export type PanelTarget =
  | { readonly kind: "artifact"; readonly turnId: string; readonly artifact: ArtifactReference; readonly all: readonly ArtifactReference[] }
  | { readonly kind: "data"; readonly alias: string };

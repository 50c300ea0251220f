import { useState } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { texts } from "../../texts.ts";
import { artifactPath } from "./artifact-path.ts";

/** Shows a picture from the artifact store. */
export function Picture({ artifact }: { artifact: ArtifactReference }) {
  const [isGone, setIsGone] = useState(false);
  const path = artifactPath(artifact);
  if (isGone) return <p className="notice">{texts.turn.pictureGone}</p>;
  return (
    <img
      src={path}
      alt={artifact.alt ?? ""}
      width={artifact.width}
      height={artifact.height}
      loading="lazy"
      decoding="async"
      onError={() => setIsGone(true)}
    />
  );
}

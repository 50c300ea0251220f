import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import { ChartView } from "../../charts/chart-view.tsx";
import { texts } from "../../texts.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { useArtifactData } from "./use-artifact-data.ts";

/** A chart from the artifact store. */
export function StoredChart({ artifact, height = 320 }: { artifact: ArtifactReference; height?: number }) {
  const loaded = useArtifactData(artifact);
  if (loaded.state === "failed") return <FailureNotice error={loaded.error} />;
  if (loaded.state === "loading" || loaded.value.kind !== "chart")
    return (
      <p role="status" className="soft" style={{ minHeight: height }}>
        {texts.conversation.loading}
      </p>
    );
  const { spec, data } = loaded.value;
  return <ChartView spec={spec} data={data} title={artifact.title} height={height} />;
}

import type { ArtifactEnvelope } from "../../../src/protocol/artifact.ts";
import type { CellRun } from "../../../src/protocol/http-cells.ts";
import { ChartView } from "../../charts/chart-view.tsx";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";
import { formatDuration } from "../format.ts";
import { CellOutput } from "../turn/cell-output.tsx";

/** What the edited cell gave, beside what it gave before. */
export function CellComparison({ run, before }: { run: CellRun; before: readonly ArtifactEnvelope[] }) {
  return (
    <section className="comparison">
      {run.error && (
        <div role="alert" className="notice notice-major">
          <strong>
            {run.error.type}: {run.error.message}
          </strong>
          {run.error.traceback !== undefined && <pre tabIndex={0}>{run.error.traceback}</pre>}
        </div>
      )}
      <div className="columns">
        <Side title={texts.panel.old} artifacts={before} />
        <Side title={`${texts.panel.fresh} · ${texts.panel.ranIn(formatDuration(run.timing.runMs))}`} artifacts={run.artifacts} />
      </div>
      {(run.stdout !== "" || run.stderr !== "") && (
        <CellOutput
          pieces={[
            { stream: "stdout", text: run.stdout },
            { stream: "stderr", text: run.stderr },
          ]}
        />
      )}
      {run.resultPreview !== null && (
        <>
          <h3>
            {texts.panel.result} {run.resultAlias !== null && <code>{run.resultAlias}</code>}
          </h3>
          <pre className="json" tabIndex={0} data-result>
            {pretty(run.resultPreview)}
          </pre>
          {run.isResultCut && <p className="soft">{texts.panel.resultCut}</p>}
        </>
      )}
    </section>
  );
}

function Side({ title, artifacts }: { title: string; artifacts: readonly ArtifactEnvelope[] }) {
  return (
    <div>
      <h3>{title}</h3>
      {artifacts.length === 0 && <p className="soft">{texts.panel.nothingDrawn}</p>}
      {artifacts.map((artifact) =>
        artifact.kind === "image" ? (
          <Picture key={artifact.contentHash} artifact={artifact} />
        ) : (
          <ChartView key={artifact.contentHash} spec={artifact.spec} data={artifact.data} title={artifact.title} height={220} />
        ),
      )}
    </div>
  );
}

/** Digits stay as they are: indenting must not go through JavaScript's numbers. */
function pretty(json: string): string {
  if (json.length > 20_000 || /\d{16}/.test(json)) return json;
  try {
    return JSON.stringify(JSON.parse(json), null, 1);
  } catch {
    return json;
  }
}

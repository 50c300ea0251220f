import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { CellRun } from "../../../src/protocol/http-cells.ts";
import { texts } from "../../texts.ts";
import { Picture } from "../answer/picture.tsx";
import { StoredChart } from "../answer/stored-chart.tsx";
import { readBeginning } from "../api/read-beginning.ts";
import { server } from "../api/server.ts";
import { useLoaded } from "../data/use-loaded.ts";
import { formatDuration } from "../format.ts";
import { CellOutput } from "../turn/cell-output.tsx";

interface CellComparisonProps {
  readonly conversationId: string;
  readonly run: CellRun;
  readonly before: readonly ArtifactReference[];
}

/** Bytes of a result to show: as many as the server sends of a new one. */
const previewBytes = 64_000;

/** Shows the outcome of the edited cell beside the original one. */
export function CellComparison({ conversationId, run, before }: CellComparisonProps) {
  const { resultAlias } = run.previous;
  const [old] = useLoaded(
    async (signal) => {
      if (resultAlias === null) return null;
      return await readBeginning(server.tableUrl(conversationId, resultAlias, "json"), previewBytes, signal);
    },
    [conversationId, resultAlias],
  );
  const oldResult = old.state === "ready" && old.value !== null ? { alias: resultAlias, ...old.value } : null;
  const newResult = run.resultPreview === null ? null : { alias: run.resultAlias, text: run.resultPreview, isCut: run.isResultCut };
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
      {(run.stdout !== "" || run.stderr !== "") && (
        <CellOutput
          pieces={[
            { stream: "stdout", text: run.stdout },
            { stream: "stderr", text: run.stderr },
          ]}
        />
      )}
      <div className="columns">
        <Side title={texts.panel.old} artifacts={before} result={oldResult} />
        <Side
          title={`${texts.panel.fresh} · ${texts.panel.ranIn(formatDuration(run.timing.runMs))}`}
          artifacts={run.artifacts}
          result={newResult}
          isNew
        />
      </div>
    </section>
  );
}

interface SideProps {
  readonly title: string;
  readonly artifacts: readonly ArtifactReference[];
  readonly result: { readonly alias: string | null; readonly text: string; readonly isCut: boolean } | null;
  readonly isNew?: boolean;
}

function Side({ title, artifacts, result, isNew = false }: SideProps) {
  return (
    <div>
      <h3>{title}</h3>
      {artifacts.length === 0 && <p className="soft">{texts.panel.nothingDrawn}</p>}
      {artifacts.map((artifact) =>
        artifact.kind === "image" ? (
          <Picture key={artifact.contentHash} artifact={artifact} />
        ) : (
          <StoredChart key={artifact.contentHash} artifact={artifact} height={220} />
        ),
      )}
      {result && (
        <>
          <h3>
            {texts.panel.result} {result.alias !== null && <code>{result.alias}</code>}
          </h3>
          <pre className="json" tabIndex={0} {...(isNew ? { "data-result": true } : { "data-old-result": true })}>
            {indent(result.text)}
          </pre>
          {result.isCut && <p className="soft">{texts.panel.resultCut}</p>}
        </>
      )}
    </div>
  );
}

/** Indents short JSON. Text with long numbers stays as it is, because parsing would change them. */
function indent(json: string): string {
  if (json.length > 20_000 || /\d{16}/.test(json)) return json;
  try {
    return JSON.stringify(JSON.parse(json), null, 1);
  } catch {
    return json;
  }
}

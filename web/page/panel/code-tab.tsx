import { useEffect, useRef, useState } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { CellDocument, CellRun } from "../../../src/protocol/http-cells.ts";
import type { TurnDocument } from "../../../src/protocol/http-turns.ts";
import { texts } from "../../texts.ts";
import { server } from "../api/server.ts";
import { FailureNotice } from "../conversation/failure-notice.tsx";
import { CellComparison } from "./cell-comparison.tsx";
import { CodeEditor } from "./code-editor.tsx";

interface CodeTabProps {
  readonly turn: TurnDocument | null;
  readonly cell: CellDocument | null;
  readonly error: unknown;
  readonly artifact: ArtifactReference;
  readonly all: readonly ArtifactReference[];
  onChanged(): void;
}

/** The code behind an artifact. A chart that was drawn directly from data shows the cells whose results it may use. */
export function CodeTab({ turn, cell, error, artifact, all, onChanged }: CodeTabProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  if (error !== null) return <FailureNotice error={error} />;
  if (turn === null) return <p role="status">{texts.conversation.loading}</p>;
  const shown = cell ?? turn.cells.find((one) => one.cell === (chosen ?? turn.cells.at(-1)?.cell)) ?? null;
  return (
    <>
      {!cell && <p className="soft">{turn.cells.length === 0 ? texts.panel.noCode : texts.panel.drawnBy}</p>}
      {!cell && turn.cells.length > 1 && (
        <label className="row">
          <select value={shown?.cell} onChange={(event) => setChosen(Number(event.target.value))} aria-label={texts.panel.tabs.code}>
            {turn.cells.map((one) => (
              <option key={one.cell} value={one.cell}>
                {texts.panel.cellOf(one.cell)}
              </option>
            ))}
          </select>
        </label>
      )}
      {shown && (
        <CellForm
          key={shown.cell}
          turn={turn}
          cell={shown}
          before={cell ? [artifact] : all.filter(({ contentHash }) => shown.artifacts.includes(contentHash))}
          onChanged={onChanged}
        />
      )}
    </>
  );
}

interface CellFormProps {
  readonly turn: TurnDocument;
  readonly cell: CellDocument;
  readonly before: readonly ArtifactReference[];
  onChanged(): void;
}

function CellForm({ turn, cell, before, onChanged }: CellFormProps) {
  const [code, setCode] = useState(cell.code);
  const [run, setRun] = useState<CellRun | null>(cell.runs.at(-1) ?? null);
  const [isRunning, setIsRunning] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const start = async (): Promise<void> => {
    const { signal } = (stop.current = new AbortController());
    setIsRunning(true);
    setProblem(null);
    try {
      setRun(await server.runCell(turn.turnId, cell.cell, code, signal));
      onChanged();
    } catch (error) {
      if (!signal.aborted) setProblem(error);
    } finally {
      setIsRunning(false);
    }
  };
  return (
    <>
      <p className="soft">
        {texts.panel.cellOf(cell.cell)}. {cell.reason}
      </p>
      <CodeEditor code={code} isDisabled={isRunning} onChange={setCode} onRun={() => void start()} />
      <p className="row">
        <button type="button" className="primary" disabled={isRunning || turn.status === "running"} onClick={() => void start()}>
          {isRunning ? texts.panel.running : texts.panel.run}
        </button>
        {isRunning && (
          <button type="button" className="stop" onClick={() => stop.current?.abort()}>
            {texts.conversation.stop}
          </button>
        )}
        <button type="button" className="quiet" disabled={isRunning || code === cell.code} onClick={() => setCode(cell.code)}>
          {texts.panel.reset}
        </button>
        <span className="soft">{texts.panel.runHint}</span>
      </p>
      {problem !== null && <FailureNotice error={problem} />}
      {run && <CellComparison conversationId={turn.conversationId} run={run} before={before} />}
    </>
  );
}

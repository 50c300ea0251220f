import type { RecordedResult } from "../../../src/protocol/turn-result.ts";
import { texts } from "../../texts.ts";
import { formatBytes, formatDuration } from "../format.ts";
import { CopyButton } from "../turn/copy-button.tsx";

interface TurnFootProps {
  readonly answer: string;
  readonly result: RecordedResult | null;
  readonly canRetry: boolean;
  onRetry(): void;
}

/** Footer of a turn: how it ended, what it cost, and the next actions. */
export function TurnFoot({ answer, result, canRetry, onRetry }: TurnFootProps) {
  return (
    <footer className="turn-foot">
      {answer !== "" && <CopyButton text={answer} label={texts.turn.copyAnswer} />}
      {canRetry && (
        <button type="button" className="quiet small" onClick={onRetry}>
          {texts.turn.retry}
        </button>
      )}
      {result && (
        <span className="soft">
          <span className={result.outcome.stopReason === "model_error" ? "turn-failed" : undefined}>
            {texts.turn.stops[result.outcome.stopReason]}
          </span>{" "}
          · {result.model && `${result.model} · `}
          {formatDuration(result.usage.wallMs)} · {texts.turn.usage(result.usage.inputTokens, result.usage.outputTokens)}
        </span>
      )}
      {result?.dataset && /^ds_[\w-]+$/.test(result.dataset.datasetId) && (
        <a className="soft" href={`/data/${result.dataset.datasetId}.json?download=1`} download>
          {texts.turn.data} ({formatBytes(result.dataset.bytes)})
        </a>
      )}
    </footer>
  );
}

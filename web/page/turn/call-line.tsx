import { texts } from "../../texts.ts";
import { formatBytes, formatDuration } from "../format.ts";
import type { CallView } from "./turn-view.ts";
import { useElapsed } from "./use-elapsed.ts";

/** One call in one line: tool, server, size, duration. */
export function CallLine({ call, isRunning }: { call: CallView; isRunning: boolean }) {
  const { tool, server, intent, end, progress, cell } = call;
  const isOpen = end === undefined && isRunning;
  const elapsed = useElapsed(call.startedAt, isOpen);
  const status = end?.status ?? (isOpen ? "running" : "aborted");
  const why = intent ?? cell?.postProcessingContract.reason;
  return (
    <span className="call-line">
      <span className={`mark mark-${status}`} role="img" aria-label={texts.turn.status[status]} />
      <span className="call-tool">{tool}</span>
      {server !== undefined && <span className="badge">{server}</span>}
      {why !== undefined && <span className="call-intent">{why}</span>}
      <span className="call-facts">
        {isOpen && progress && <span>{toProgress(progress)}</span>}
        {end?.rows !== undefined && <span>{texts.conversation.rows(end.rows)}</span>}
        {end?.bytes !== undefined && <span>{formatBytes(end.bytes)}</span>}
        {end?.alias !== undefined && <code>{end.alias}</code>}
        <span className="call-time">{formatDuration(end?.durationMs ?? elapsed)}</span>
      </span>
    </span>
  );
}

function toProgress({ progress, total, message }: NonNullable<CallView["progress"]>): string {
  const share = total === undefined ? String(progress) : `${progress} / ${total}`;
  return message === undefined ? share : `${message} ${total === undefined ? "" : share}`.trim();
}

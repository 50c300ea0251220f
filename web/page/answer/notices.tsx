import type { Gap, RecordedResult } from "../../../src/protocol/turn-result.ts";
import { texts } from "../../texts.ts";

interface NoticesProps {
  readonly gaps: readonly Gap[];
  readonly result: RecordedResult | null;
}

/** Lists what is missing: gaps, low coverage, coverage events, and reasons to doubt the answer. */
export function Notices({ gaps: all, result }: NoticesProps) {
  const hasFailed = result?.outcome.error !== undefined; // the failure has its own card
  const gaps = all.filter(({ code }) => !hasFailed || code !== result.outcome.stopReason);
  const isDoubtful = result !== null && !hasFailed && result.confidence.level !== "high";
  if (gaps.length === 0 && !isDoubtful) return null;
  const isReasonInGaps = gaps.some(({ detail }) => detail === result?.confidence.reason);
  return (
    <section className="notices" aria-label={texts.turn.notices}>
      {isDoubtful && (
        <p className={`notice notice-${result.confidence.level === "low" ? "major" : "minor"}`}>
          <strong>{texts.turn.confidence[result.confidence.level]}.</strong> {!isReasonInGaps && result.confidence.reason}
        </p>
      )}
      {gaps.map(({ code, severity, detail }) => (
        <p key={`${code} ${detail}`} className={`notice notice-${severity}`} data-gap={code}>
          <strong>{texts.turn.gapTitles[code] ?? texts.turn.severities[severity]}.</strong> {detail}
        </p>
      ))}
    </section>
  );
}

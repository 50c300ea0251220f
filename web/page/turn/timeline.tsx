import { useState } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { TurnPlan } from "../../../src/protocol/turn-plan.ts";
import { texts } from "../../texts.ts";
import { formatDuration } from "../format.ts";
import { ArtifactThumb } from "./artifact-thumb.tsx";
import { CallCard } from "./call-card.tsx";
import type { CallView, TurnView } from "./turn-view.ts";
import { useElapsed } from "./use-elapsed.ts";

interface TimelineProps {
  readonly turn: TurnView;
  onOpen(artifact: ArtifactReference): void;
}

/** Timeline of a turn: detailed while it runs, one line when it has ended. */
export function Timeline({ turn, onOpen }: TimelineProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? turn.isRunning;
  return (
    <details
      className="timeline"
      open={isOpen}
      onToggle={(event) => event.currentTarget.open !== isOpen && setChosen(event.currentTarget.open)}
    >
      <summary>
        <TimelineSummary turn={turn} />
      </summary>
      {isOpen && (
        <ol className="calls">
          {turn.plan && <PlanLine plan={turn.plan} />}
          {turn.calls.map((call) => (
            <CallWithPictures key={call.callId} turn={turn} call={call} onOpen={onOpen} />
          ))}
        </ol>
      )}
    </details>
  );
}

function PlanLine({ plan }: { plan: TurnPlan }) {
  const facts = [texts.turn.intents[plan.chartIntent], plan.population, texts.turn.planSource[plan.source], plan.because].filter(Boolean);
  return (
    <li className="plan">
      <span className="mark mark-ok" aria-hidden />
      <span className="call-tool">{texts.turn.plan}</span>
      <span>{plan.measures.join(", ")}</span>
      <span className="soft">{facts.join(" · ")}</span>
    </li>
  );
}

function CallWithPictures({ turn, call, onOpen }: TimelineProps & { call: CallView }) {
  const pictures = turn.isRunning ? turn.artifacts.filter(({ contentHash }) => call.artifacts.includes(contentHash)) : [];
  return (
    <>
      <CallCard call={call} turnId={turn.turnId} isRunning={turn.isRunning} />
      {pictures.map((artifact) => (
        <li key={artifact.contentHash}>
          <ArtifactThumb artifact={artifact} onOpen={onOpen} />
        </li>
      ))}
    </>
  );
}

/** Only a complete answer has the green check. */
function markOf({ result }: TurnView): "ok" | "error" | "aborted" | "partial" {
  const stop = result?.outcome.stopReason ?? "aborted";
  if (stop === "complete_answer") return "ok";
  if (stop === "model_error") return "error";
  return stop === "aborted" ? "aborted" : "partial";
}

function TimelineSummary({ turn }: { turn: TurnView }) {
  const elapsed = useElapsed(turn.startedAt, turn.isRunning);
  if (turn.isRunning) {
    const isWaiting = turn.calls.every(({ end }) => end !== undefined) && turn.answer === "";
    return (
      <span className="timeline-line">
        <span className="mark mark-running" aria-hidden />
        <span role="status">{isWaiting ? texts.turn.thinking : texts.turn.working}</span>
        {turn.step && <span className="soft">{texts.turn.step(turn.step.step, turn.step.of)}</span>}
        <span className="call-time">{formatDuration(elapsed)}</span>
      </span>
    );
  }
  const [failed, refused] = (["error", "refused"] as const).map((status) => turn.calls.filter(({ end }) => end?.status === status).length);
  const [steps, wall] = [turn.result?.usage.steps ?? turn.step?.step ?? 0, turn.result?.usage.wallMs ?? 0];
  return (
    <span className="timeline-line">
      <span
        className={`mark mark-${markOf(turn)}`}
        role="img"
        aria-label={turn.result ? texts.turn.stops[turn.result.outcome.stopReason] : ""}
      />
      <span>{texts.turn.showTimeline}</span>
      <span className="soft">
        {texts.turn.done(steps, turn.calls.length, formatDuration(wall))}
        {failed ? `, ${texts.turn.failedCalls(failed)}` : ""}
        {refused ? `, ${texts.turn.refusedCalls(refused)}` : ""}
      </span>
    </span>
  );
}

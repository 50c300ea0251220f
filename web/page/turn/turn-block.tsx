import { memo, useCallback } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
import type { ModelFailure } from "../../../src/protocol/turn-result.ts";
import { texts } from "../../texts.ts";
import { Answer } from "../answer/answer.tsx";
import { Notices } from "../answer/notices.tsx";
import { TurnFoot } from "../answer/turn-foot.tsx";
import type { ChatMessage } from "./chat-message.ts";
import { Timeline } from "./timeline.tsx";
import { toTurnView } from "./to-turn-view.ts";
import { useStableArtifacts } from "./use-stable-artifacts.ts";

interface TurnBlockProps {
  readonly message: ChatMessage;
  readonly isStreaming: boolean;
  readonly canRetry: boolean;
  onOpen(turnId: string, artifact: ArtifactReference, all: readonly ArtifactReference[]): void;
  onRetry(messageId: string): void;
}

/** One turn: timeline, answer, notices. */
export const TurnBlock = memo(function TurnBlock({ message, isStreaming, canRetry, onOpen, onRetry }: TurnBlockProps) {
  const seen = toTurnView(message, isStreaming);
  const artifacts = useStableArtifacts(seen.artifacts);
  const turn = { ...seen, artifacts };
  const { turnId } = turn;
  const open = useCallback((artifact: ArtifactReference) => onOpen(turnId, artifact, artifacts), [onOpen, turnId, artifacts]);
  const hasEnded = !turn.isRunning;
  const failure = turn.result?.outcome.error;
  // The answer ends with the failure, for clients that show only text. Here it is shown once, as a card.
  const answer = failure === undefined ? turn.answer : withoutFailure(turn.answer, failure);
  return (
    <article className="turn" data-turn={turn.turnId} data-status={turn.isRunning ? "running" : "ended"}>
      <Timeline turn={turn} onOpen={open} />
      {(answer !== "" || (hasEnded && turn.artifacts.length > 0)) && (
        <Answer text={answer} artifacts={hasEnded ? turn.artifacts : noArtifacts} onOpen={open} />
      )}
      {hasEnded && turn.answer === "" && <p className="soft">{texts.turn.noAnswer}</p>}
      {failure && (
        <section className="turn-failure" role="alert">
          <span className="mark mark-error" aria-hidden />
          <strong>{failure.message}</strong>
          <p>{failure.hint}</p>
        </section>
      )}
      <Notices gaps={turn.gaps} result={turn.result} />
      {hasEnded && <TurnFoot answer={turn.answer} result={turn.result} canRetry={canRetry} onRetry={() => onRetry(message.id)} />}
    </article>
  );
});

function withoutFailure(answer: string, { message, hint }: ModelFailure): string {
  return answer.replaceAll(`${message} ${hint}`, "").trim();
}

const noArtifacts: readonly ArtifactReference[] = [];

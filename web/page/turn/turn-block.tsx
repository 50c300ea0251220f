import { memo, useCallback } from "react";
import type { ArtifactReference } from "../../../src/protocol/artifact-reference.ts";
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
  return (
    <article className="turn" data-turn={turn.turnId} data-status={turn.isRunning ? "running" : "ended"}>
      <Timeline turn={turn} onOpen={open} />
      {(hasEnded || turn.answer !== "") && <Answer text={turn.answer} artifacts={hasEnded ? turn.artifacts : noArtifacts} onOpen={open} />}
      {hasEnded && turn.answer === "" && <p className="soft">{texts.turn.noAnswer}</p>}
      <Notices gaps={turn.gaps} result={turn.result} />
      {hasEnded && <TurnFoot answer={turn.answer} result={turn.result} canRetry={canRetry} onRetry={() => onRetry(message.id)} />}
    </article>
  );
});

const noArtifacts: readonly ArtifactReference[] = [];

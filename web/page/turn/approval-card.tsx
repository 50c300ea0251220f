import { useState } from "react";
import { texts } from "../../texts.ts";
import { describeFailure } from "../api/api-error.ts";
import { server } from "../api/server.ts";
import { JsonView } from "./json-view.tsx";
import type { CallView } from "./turn-view.ts";

interface ApprovalCardProps {
  readonly turnId: string;
  readonly approval: NonNullable<CallView["approval"]>;
  readonly isRunning: boolean;
}

/** A call that waits for approval: the tool, its arguments, and two buttons. */
export function ApprovalCard({ turnId, approval, isRunning }: ApprovalCardProps) {
  const [isSent, setIsSent] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const answer = (approved: boolean): void => {
    setIsSent(true);
    setProblem(null);
    server.approve(turnId, approval.approvalId, approved).catch((error: unknown) => {
      setIsSent(false);
      setProblem(describeFailure(error).message);
    });
  };
  if (approval.answer !== undefined) return <p className="approval-answer">{texts.turn.approvalAnswers[approval.answer]}</p>;
  if (!isRunning) return null;
  return (
    <section className="approval" role="alertdialog" aria-label={texts.turn.approval}>
      <p>
        <strong>{texts.turn.approval}</strong>
      </p>
      <p>{texts.turn.approvalOf(approval.tool, approval.server)}</p>
      <JsonView value={approval.arguments} label={texts.turn.arguments} />
      <p className="row">
        <button type="button" className="primary" disabled={isSent} onClick={() => answer(true)}>
          {texts.turn.approve}
        </button>
        <button type="button" disabled={isSent} onClick={() => answer(false)}>
          {texts.turn.refuse}
        </button>
      </p>
      {problem !== null && <p role="alert">{problem}</p>}
    </section>
  );
}

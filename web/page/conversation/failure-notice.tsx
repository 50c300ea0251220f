import { texts } from "../../texts.ts";
import { ApiError, describeFailure } from "../api/api-error.ts";

interface FailureNoticeProps {
  readonly error: unknown;
  onAgain?(): void;
  onDismiss?(): void;
}

/** Shows what failed, why, and what to do. */
export function FailureNotice({ error, onAgain, onDismiss }: FailureNoticeProps) {
  const isRefusal = error instanceof ApiError;
  const { message, hint } = describeFailure(error);
  return (
    <div role="alert" className="notice notice-major">
      <strong>{isRefusal ? texts.conversation.failed : texts.conversation.lost}.</strong> {message}{" "}
      {isRefusal ? hint : texts.conversation.lostMore}
      <p className="row">
        {onAgain && (
          <button type="button" onClick={onAgain}>
            {texts.conversation.again}
          </button>
        )}
        {onDismiss && (
          <button type="button" className="quiet" onClick={onDismiss}>
            {texts.conversation.dismiss}
          </button>
        )}
      </p>
    </div>
  );
}

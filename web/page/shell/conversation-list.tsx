import { useState } from "react";
import type { ConversationSummary } from "../../../src/protocol/http-conversations.ts";
import { texts } from "../../texts.ts";
import { formatWhen } from "../format.ts";

interface ConversationListProps {
  readonly list: readonly ConversationSummary[];
  readonly current: string | null;
  readonly isSearch: boolean;
  onOpen(id: string): void;
  onRemove(id: string): void;
}

export function ConversationList({ list, current, isSearch, onOpen, onRemove }: ConversationListProps) {
  const [toConfirm, setToConfirm] = useState<string | null>(null);
  if (list.length === 0) return <p className="soft sidebar-note">{isSearch ? texts.shell.nothingFound : texts.shell.noneYet}</p>;
  return (
    <ul className="conversations">
      {list.map(({ id, title, updatedAt, runningTurnId, stopReason, snippet }) => (
        <li key={id} className={id === current ? "is-current" : undefined}>
          <a
            href={`/c/${id}`}
            aria-current={id === current ? "page" : undefined}
            onClick={(event) => {
              if (event.metaKey || event.ctrlKey) return;
              event.preventDefault();
              onOpen(id);
            }}
          >
            <span className="conversation-title">{title}</span>
            <span className="soft">
              {formatWhen(updatedAt)}
              {runningTurnId !== null && ` · ${texts.shell.running}`}
              {stopReason === "model_error" && (
                <>
                  {" · "}
                  <span className="turn-failed">{texts.shell.failed}</span>
                </>
              )}
            </span>
            {snippet !== undefined && <span className="soft snippet">{snippet}</span>}
          </a>
          <button
            type="button"
            className="quiet small"
            aria-label={texts.shell.remove(title)}
            onClick={() => setToConfirm(toConfirm === id ? null : id)}
          >
            ×
          </button>
          {toConfirm === id && (
            <div className="sure" role="alertdialog" aria-label={texts.shell.removeSure}>
              <p>{texts.shell.removeSure}</p>
              <button type="button" onClick={() => onRemove(id)}>
                {texts.shell.removeYes}
              </button>
              <button type="button" className="quiet" onClick={() => setToConfirm(null)}>
                {texts.shell.removeNo}
              </button>
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}

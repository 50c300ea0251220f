import { useState } from "react";
import { texts } from "../../texts.ts";

interface QuestionProps {
  readonly text: string;
  readonly canEdit: boolean;
  onEdit(text: string): void;
}

/** A question. Editing it asks again and removes the turns after it. */
export function Question({ text, canEdit, onEdit }: QuestionProps) {
  const [draft, setDraft] = useState<string | null>(null);
  if (draft === null) {
    return (
      <div className="question">
        <h2 className="visually-hidden">{texts.conversation.you}</h2>
        <p>{text}</p>
        {canEdit && (
          <button type="button" className="quiet small" onClick={() => setDraft(text)}>
            {texts.turn.edit}
          </button>
        )}
      </div>
    );
  }
  return (
    <form
      className="question"
      onSubmit={(event) => {
        event.preventDefault();
        setDraft(null);
        if (draft.trim() !== "") onEdit(draft.trim());
      }}
    >
      <textarea
        aria-label={texts.turn.editLabel}
        value={draft}
        rows={Math.min(10, draft.split("\n").length + 1)}
        onChange={(event) => setDraft(event.target.value)}
        autoFocus
      />
      <p className="row">
        <button type="submit" className="primary">
          {texts.turn.editSend}
        </button>
        <button type="button" onClick={() => setDraft(null)}>
          {texts.turn.editCancel}
        </button>
      </p>
    </form>
  );
}

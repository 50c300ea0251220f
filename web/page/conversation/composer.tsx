import { useState, type KeyboardEvent } from "react";
import { texts } from "../../texts.ts";

interface ComposerProps {
  readonly isRunning: boolean;
  readonly isStopping: boolean;
  readonly isDisabled: boolean;
  readonly maxCharacters: number;
  onAsk(text: string): void;
  onStop(): void;
  onAttach(): void;
}

/** Input for a question. Enter sends it; Shift+Enter starts a new line. */
export function Composer({ isRunning, isStopping, isDisabled, maxCharacters, onAsk, onStop, onAttach }: ComposerProps) {
  const [text, setText] = useState("");
  const isTooLong = text.length > maxCharacters;
  const canAsk = text.trim() !== "" && !isRunning && !isDisabled && !isTooLong;
  const ask = (): void => {
    if (!canAsk) return;
    onAsk(text.trim());
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    ask();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      <textarea
        aria-label={texts.conversation.question}
        placeholder={texts.conversation.placeholder}
        value={text}
        rows={Math.min(8, Math.max(1, text.split("\n").length))}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isTooLong && <p role="alert">{texts.conversation.tooLong(maxCharacters)}</p>}
      <div className="composer-row">
        <button type="button" className="quiet" onClick={onAttach}>
          {texts.conversation.attach}
        </button>
        {isRunning ? (
          <button type="button" className="stop" onClick={onStop} disabled={isStopping}>
            {isStopping ? texts.conversation.stopping : texts.conversation.stop}
          </button>
        ) : (
          <button type="submit" className="primary" disabled={!canAsk}>
            {texts.conversation.ask}
          </button>
        )}
      </div>
    </form>
  );
}

import { useState } from "react";
import { texts } from "../../texts.ts";

export function CopyButton({ text, label = texts.turn.copy }: { text: string; label?: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 2000);
  };
  return (
    <button type="button" className="quiet small" onClick={() => void copy().catch(() => setIsCopied(false))}>
      <span aria-live="polite">{isCopied ? texts.turn.copied : label}</span>
    </button>
  );
}

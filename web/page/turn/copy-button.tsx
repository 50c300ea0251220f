import { useEffect, useState } from "react";
import { texts } from "../../texts.ts";

export function CopyButton({ text, label = texts.turn.copy }: { text: string; label?: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
  };
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setIsCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button type="button" className="quiet small" onClick={() => void copy().catch(() => setIsCopied(false))}>
      <span aria-live="polite">{isCopied ? texts.turn.copied : label}</span>
    </button>
  );
}

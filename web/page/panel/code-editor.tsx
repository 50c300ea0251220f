import { useRef } from "react";
import { texts } from "../../texts.ts";
import { highlightPython, toLines } from "../turn/highlight-python.ts";
import { PythonLines } from "../turn/python-lines.tsx";

interface CodeEditorProps {
  readonly code: string;
  readonly isDisabled: boolean;
  onChange(code: string): void;
  onRun(): void;
}

/** A text area over its own highlighted copy. Tab leaves it; Ctrl+Enter runs the code. */
export function CodeEditor({ code, isDisabled, onChange, onRun }: CodeEditorProps) {
  const copy = useRef<HTMLPreElement>(null);
  const lines = toLines(highlightPython(code));
  return (
    <div className="editor">
      <pre ref={copy} aria-hidden>
        <PythonLines lines={lines} />
      </pre>
      <textarea
        aria-label={texts.panel.editor}
        value={code}
        rows={Math.min(26, lines.length + 1)}
        spellCheck={false}
        autoCapitalize="off"
        wrap="off"
        disabled={isDisabled}
        onChange={(event) => onChange(event.target.value)}
        onScroll={(event) => copy.current?.scrollTo(event.currentTarget.scrollLeft, event.currentTarget.scrollTop)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onRun();
        }}
      />
    </div>
  );
}

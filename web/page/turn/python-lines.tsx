import type { toLines } from "./highlight-python.ts";

/** Highlighted code, line by line, with line numbers. */
export function PythonLines({ lines }: { lines: ReturnType<typeof toLines> }) {
  return lines.map((line, index) => (
    <code key={index} className="code-line" data-line={index + 1}>
      {line.map(({ kind, text }, place) => (
        <span key={place} className={kind === "plain" ? undefined : `code-${kind}`}>
          {text}
        </span>
      ))}
      {"\n"}
    </code>
  ));
}

import { memo } from "react";
import { texts } from "../../texts.ts";
import { highlightPython, toLines } from "./highlight-python.ts";

/** Code with line numbers, which are not copied along with it. */
export const PythonCode = memo(function PythonCode({ code }: { code: string }) {
  const lines = toLines(highlightPython(code.replace(/\n$/, "")));
  return (
    <div className="code" role="region" aria-label={`${texts.turn.code}, ${texts.turn.lines(lines.length)}`} tabIndex={0}>
      <pre>
        {lines.map((line, index) => (
          <code key={index} className="code-line" data-line={index + 1}>
            {line.map(({ kind, text }, place) => (
              <span key={place} className={kind === "plain" ? undefined : `code-${kind}`}>
                {text}
              </span>
            ))}
            {"\n"}
          </code>
        ))}
      </pre>
    </div>
  );
});

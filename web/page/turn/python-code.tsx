import { memo } from "react";
import { texts } from "../../texts.ts";
import { highlightPython, toLines } from "./highlight-python.ts";
import { PythonLines } from "./python-lines.tsx";

/** Code with line numbers that are not copied with it. */
export const PythonCode = memo(function PythonCode({ code }: { code: string }) {
  const lines = toLines(highlightPython(code.replace(/\n$/, "")));
  return (
    <div className="code" role="region" aria-label={`${texts.turn.code}, ${texts.turn.lines(lines.length)}`} tabIndex={0}>
      <pre>
        <PythonLines lines={lines} />
      </pre>
    </div>
  );
});

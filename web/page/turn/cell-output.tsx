import { memo, useEffect, useRef } from "react";
import { texts } from "../../texts.ts";
import { formatBytes } from "../format.ts";
import type { OutputPiece } from "./turn-view.ts";

const maxCharacters = 40_000;

/** Live output of a cell. Follows the end unless the reader has scrolled away. */
export const CellOutput = memo(function CellOutput({ pieces }: { pieces: readonly OutputPiece[] }) {
  const box = useRef<HTMLDivElement>(null);
  const { shown, omitted } = keepEnd(pieces);
  const size = pieces.reduce((sum, { text }) => sum + text.length, 0);
  useEffect(() => {
    const node = box.current;
    if (node && node.scrollHeight - node.scrollTop - node.clientHeight < 80) node.scrollTop = node.scrollHeight;
  }, [size]);
  return (
    <div className="output" ref={box} role="log" aria-label={texts.turn.output} tabIndex={0}>
      {omitted > 0 && <p className="soft">{texts.turn.cutOutput(formatBytes(omitted))}</p>}
      <pre>
        {shown.map(({ stream, text }, index) => (
          <span key={index} className={stream === "stderr" ? "output-stderr" : undefined}>
            {text}
          </span>
        ))}
      </pre>
    </div>
  );
});

/** Joins neighbouring pieces of one stream and keeps only the end of very long output. */
function keepEnd(pieces: readonly OutputPiece[]): { shown: OutputPiece[]; omitted: number } {
  const shown: { stream: OutputPiece["stream"]; text: string }[] = [];
  let room = maxCharacters;
  let omitted = 0;
  for (const { stream, text } of pieces.toReversed()) {
    const kept = room > 0 ? text.slice(-room) : "";
    omitted += text.length - kept.length;
    room -= kept.length;
    if (kept === "") continue;
    const first = shown[0];
    if (first?.stream === stream) first.text = kept + first.text;
    else shown.unshift({ stream, text: kept });
  }
  return { shown, omitted };
}

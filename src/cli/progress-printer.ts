import type { WriteStream } from "node:tty";
import type { OnProgress, BuildProgress } from "../sandbox/snapshot/progress.ts";

/** Creates a printer for the progress of a build. On a terminal it updates one line per step; elsewhere it writes plain lines. */
export function createProgressPrinter(stream: Pick<WriteStream, "write" | "isTTY" | "columns">): OnProgress {
  if (!stream.isTTY)
    return (progress) => {
      if (progress.state !== "working") stream.write(`${toLine(progress)}\n`);
    };
  return (progress) => {
    const line = toLine(progress).slice(0, (stream.columns || 80) - 1);
    stream.write(progress.state === "done" ? `\r\u001B[2K${toLine(progress)}\n` : `\r\u001B[2K${line}`);
  };
}

function toLine({ step, state, detail, elapsedMs, bytes }: BuildProgress): string {
  const mark = state === "done" ? "✓" : "…";
  const facts = [state === "started" ? "" : formatSeconds(elapsedMs), bytes === undefined ? "" : formatBytes(bytes), detail?.trim() ?? ""];
  return [`${mark} ${step}`, ...facts.filter(Boolean)].join(" · ");
}

export function formatBytes(bytes: number): string {
  if (bytes < 1e3) return `${bytes} B`;
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

export function formatSeconds(elapsedMs: number): string {
  return `${(elapsedMs / 1000).toFixed(1)} s`;
}

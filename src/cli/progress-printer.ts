import type { WriteStream } from "node:tty";
import type { OnProgress, BuildProgress } from "../sandbox/snapshot/progress.ts";

/** Shows a build to a person: one line that lives while a step works on a terminal, plain lines elsewhere. */
export function createProgressPrinter(stream: Pick<WriteStream, "write" | "isTTY" | "columns">): OnProgress {
  if (!stream.isTTY) return (progress) => void (progress.state === "working" ? null : stream.write(`${plainLine(progress)}\n`));
  return (progress) => {
    const line = plainLine(progress).slice(0, (stream.columns || 80) - 1);
    stream.write(progress.state === "done" ? `\r\u001B[2K${plainLine(progress)}\n` : `\r\u001B[2K${line}`);
  };
}

function plainLine({ step, state, detail, elapsedMs, bytes }: BuildProgress): string {
  const mark = state === "done" ? "✓" : "…";
  const facts = [state === "started" ? "" : formatSeconds(elapsedMs), bytes === undefined ? "" : formatBytes(bytes), detail?.trim() ?? ""];
  return [`${mark} ${step}`, ...facts.filter(Boolean)].join(" · ");
}

export function formatBytes(bytes: number): string {
  if (bytes < 1e3) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.round(bytes / 1e6)} MB`;
}

function formatSeconds(elapsedMs: number): string {
  return `${(elapsedMs / 1000).toFixed(1)} s`;
}

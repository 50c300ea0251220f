import type { ChartRow, ChartSpec } from "./chart-spec.ts";
import type { Figure } from "./figure.ts";
import type { CellError } from "./worker-frames.ts";

export type { CellError } from "./worker-frames.ts";

/** How a cell can end. Each is told apart by the host, which measures time, memory and cause itself. */
export type CellStatus =
  | "ok"
  | "python_error"
  | "timeout"
  | "out_of_memory"
  | "output_limit"
  | "crashed"
  | "contract_violation"
  | "sandbox_lost";

/** One artifact as it left the sandbox, checked by the host but not yet stored anywhere. */
export type CellArtifact =
  | {
      kind: "image";
      alt: string;
      title?: string;
      width: number;
      height: number;
      contentHash: string;
      bytes: Uint8Array;
      figure?: Figure;
    }
  | { kind: "chart"; title?: string; contentHash: string; spec: ChartSpec; data: ChartRow[]; bytes: Uint8Array };

export interface CellOutcome {
  schemaVersion: 1;
  status: CellStatus;
  /** The result as JSON text, exactly as the sandbox wrote it (integers past 2^53 stay exact); null when there is none. */
  resultJson: string | null;
  stdout: string;
  stderr: string;
  truncated?: { stdout?: { omittedBytes: number }; stderr?: { omittedBytes: number } };
  artifacts: CellArtifact[];
  diagnostics: Record<string, unknown>;
  error?: CellError;
  timing: { queueMs: number; startMs: number; runMs: number; totalMs: number };
  usage: { peakMemoryBytes: number; cpuMs: number };
  /** Of the process that ran the cell, when that process is what ended; 128 and the signal's number when a signal did it. */
  exitCode?: number;
  sandbox: { id: string; driver: string; start: "pool" | "restored" | "forked" | "cold" };
}

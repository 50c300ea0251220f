import { z } from "zod";
import type { ChartRow, ChartSpec } from "./chart-spec.ts";
import type { Figure } from "./figure.ts";
import type { CellError } from "./worker-frames.ts";

export type { CellError } from "./worker-frames.ts";

/** How a cell ended. The host determines it: it measures time and memory itself and does not trust the sandbox. */
export type CellStatus =
  | "ok"
  | "python_error"
  | "timeout"
  | "out_of_memory"
  | "output_limit"
  | "crashed"
  | "contract_violation"
  | "sandbox_lost";

/** An artifact from the sandbox, validated by the host but not stored yet. */
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

/** Where the time of a call went. */
export const cellTimingSchema = z.strictObject({ queueMs: z.number(), startMs: z.number(), runMs: z.number(), totalMs: z.number() });

/** What a cell produced. `runCell` measures it, and `judgeCell` decides `status`, `error` and `diagnostics`. `sluice run --json` prints new fields as they are. */
export interface CellOutcome {
  schemaVersion: 1;
  status: CellStatus;
  /** The result as JSON text, exactly as the sandbox wrote it, so that integers beyond 2^53 stay exact; null without a result. */
  resultJson: string | null;
  stdout: string;
  stderr: string;
  truncated?: { stdout?: { omittedBytes: number }; stderr?: { omittedBytes: number } };
  artifacts: CellArtifact[];
  diagnostics: Record<string, unknown>;
  error?: CellError;
  timing: z.infer<typeof cellTimingSchema>;
  /** Of all processes of the sandbox, while the cell ran. */
  usage: { peakMemoryBytes: number; cpuMs: number };
  /** Only when the process of the cell ended: its exit code, or 128 plus the signal number. For probes; `sluice run --json` leaves it out. */
  exitCode?: number;
  sandbox: { id: string; driver: string; start: "pool" | "restored" | "forked" | "cold" };
}

/** A progress report of a long build. A finished step has `bytes`, the amount that it downloaded or wrote, if known. */
export interface BuildProgress {
  readonly step: string;
  readonly state: "started" | "working" | "done";
  readonly detail?: string;
  readonly elapsedMs: number;
  readonly bytes?: number;
}

export type OnProgress = (progress: BuildProgress) => void;

export interface StepResult<Value> {
  readonly value: Value;
  readonly detail?: string;
  readonly bytes?: number;
}

/** Runs one named step and reports its start, its output lines and its end. */
export async function runStep<Value>(
  step: string,
  onProgress: OnProgress | undefined,
  work: (report: (line: string) => void) => Promise<StepResult<Value>>,
): Promise<Value> {
  const startedAt = performance.now();
  const elapsedMs = (): number => performance.now() - startedAt;
  onProgress?.({ step, state: "started", elapsedMs: 0 });
  const { value, detail, bytes } = await work((line) => onProgress?.({ step, state: "working", detail: line, elapsedMs: elapsedMs() }));
  onProgress?.({ step, state: "done", detail, bytes, elapsedMs: elapsedMs() });
  return value;
}

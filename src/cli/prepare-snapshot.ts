import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import { fetchRunsc } from "../snapshot/fetch-runsc.ts";
import { findSnapshot } from "../snapshot/find-snapshot.ts";
import type { OnProgress } from "../snapshot/progress.ts";
import { clearAbandonedWorkplaces } from "../snapshot/workplace.ts";

export interface PrepareSnapshotOptions {
  readonly cacheDirectory: string;
  readonly searchPath: string;
  readonly onProgress?: OnProgress;
  /** What a person should know and nothing ends for, one line. */
  readonly onWarning: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Brings what sandboxes are made of, unless it is there: gVisor's program, and the snapshot for this version. */
export async function prepareSnapshot({ onWarning, ...options }: PrepareSnapshotOptions): Promise<void> {
  await clearAbandonedWorkplaces(options.cacheDirectory);
  await fetchRunsc(options).catch((error: unknown) => {
    options.signal.throwIfAborted();
    // The other drivers do without; `sluice doctor` says what is missing.
    onWarning(`gVisor could not be brought, its driver will not be usable: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (await findSnapshot(options)) return;
  const { source } = await buildSnapshot(options);
  if (source === "debian")
    onWarning(
      "The package index could not be reached: the snapshot was built from Debian's own packages, without pyarrow. `sluice snapshot build` tries again.",
    );
}

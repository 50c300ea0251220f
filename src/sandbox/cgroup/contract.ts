import type { Usage } from "../contract.ts";

/** The limits and the meter of one sandbox. Its directories exist until remove(). */
export interface LeaseCgroup {
  /** The directories, one per hierarchy. */
  readonly paths: readonly string[];
  /** A process that writes "0" into each of these is in; what it forks afterwards is too. */
  readonly joinPaths: readonly string[];
  usage(): Promise<Usage>;
  resetPeak(): Promise<void>;
  /** SIGKILL to everything inside; resolves when nothing is left. Nothing can be started in it afterwards. */
  kill(): Promise<void>;
  /** Idempotent; kills what is left first. */
  remove(): Promise<void>;
}

import type { SandboxLimits } from "./limits.ts";

export type { SandboxLimits } from "./limits.ts";

/**
 * A driver starts a worker and hands over a channel. That is the whole contract: cells, inputs and artifacts are above it, once.
 * The numbered rules that every driver keeps are in SPEC.md; one suite (test/driver-contract.ts) holds every driver to them.
 */

export type DriverName = "gvisor" | "gvisor-rootless" | "bubblewrap";

/** No other policy exists. The field is there so that a reader of a call sees it. */
export type NetworkPolicy = "deny-all";

/** A root file system that `sluice snapshot build` made and verified. */
export interface Snapshot {
  readonly id: string;
  /** Absolute path of the root file system on this machine. */
  readonly rootfs: string;
}

export interface OpenOptions {
  readonly snapshot: Snapshot;
  readonly limits: SandboxLimits;
  readonly networkPolicy: NetworkPolicy;
  readonly signal?: AbortSignal;
}

/** Whether a driver can be used here. `reason` and `fix` are sentences for a person. */
export type Preflight =
  | { readonly usable: true; readonly version: string; readonly notes: readonly string[] }
  | { readonly usable: false; readonly reason: string; readonly fix: string };

/** Length-prefixed frames both ways. Everything that comes out is untrusted. */
export interface Frame {
  readonly header: Readonly<Record<string, unknown>> & { readonly type: string };
  readonly body: Uint8Array;
}

export interface FrameChannel {
  /** Resolves when the bytes were accepted by the transport (back-pressure), rejects when the channel is closed. */
  send(header: Readonly<Record<string, unknown>> & { readonly type: string }, body?: Uint8Array): Promise<void>;
  /** The next frame, or null when the other side closed. One reader at a time. Rejects when what came is no frame. */
  receive(): Promise<Frame | null>;
  close(): void;
}

/** How a sandbox ended. `closed` is the host's own doing. */
export interface Death {
  readonly cause: "closed" | "exited" | "killed" | "out_of_memory" | "expired";
  readonly detail: string;
  readonly exitCode?: number;
  readonly signal?: string;
}

/** Measured by the host, never reported by the worker. */
export interface Usage {
  /** Highest since the last resetPeak(). */
  readonly peakMemoryBytes: number;
  /** Of everything in the sandbox since it was opened. */
  readonly cpuMs: number;
  /** Processes the kernel (or the watcher, where there is no cgroup) killed for memory since the sandbox was opened. */
  readonly memoryKills: number;
}

/** The runtime's handle on one sandbox. It never goes back to a pool. */
export interface Lease extends AsyncDisposable {
  readonly id: string;
  readonly driver: DriverName;
  readonly start: "restored" | "forked" | "cold";
  /** Its memory is touched for the first time by the first cell, unless the worker is asked to `warm` before; the pool does, while nobody waits. */
  readonly needsWarmUp?: boolean;
  readonly openedAt: number;
  readonly channel: FrameChannel;
  /** Settles once, when the last process of the sandbox is known to be gone; never rejects. */
  readonly died: Promise<Death>;
  usage(): Promise<Usage>;
  /** Gives what was used until now, and counts the peak anew. */
  resetPeak(): Promise<Usage>;
  /** Idempotent. Resolves as soon as no process of the sandbox can run any more; removing what it left on disk may go on behind. */
  close(): Promise<void>;
}

export interface SandboxDriver extends AsyncDisposable {
  readonly name: DriverName;
  /** How a failed cell is undone: in a forked child, or in a fresh sandbox in which the committed cells are replayed. */
  readonly rollback: "fork" | "replay";
  /** Cheap, starts no sandbox, never throws. */
  preflight(): Promise<Preflight>;
  /** Rejects with NoSandboxError; on abort or failure nothing is left behind. The worker has answered `hello` when this resolves. */
  open(options: OpenOptions): Promise<Lease>;
  /** Makes what open() needs and keeps (zygote, memory image). Idempotent; open() calls it when it was not called. */
  prepare(options: { readonly snapshot: Snapshot; readonly signal?: AbortSignal }): Promise<void>;
}

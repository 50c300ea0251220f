import type { SandboxLimits } from "./limits.ts";

export type { SandboxLimits } from "./limits.ts";

/**
 * A driver starts a worker in a sandbox and hands over a channel to it. That is the whole contract: cells, inputs and artifacts are built on top, once.
 * SPEC.md has the numbered rules that every driver keeps; test/driver-contract.ts tests every driver against them.
 */

export type DriverName = "gvisor" | "gvisor-rootless" | "bubblewrap";

/** There is no other policy. The field makes the policy visible where a sandbox is opened. */
type NetworkPolicy = "deny-all";

/** A root file system that `sluice snapshot build` built and verified. */
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

/** Whether a driver can be used on this machine. `reason` and `fix` are sentences for the operator. */
export type Preflight =
  | { readonly usable: true; readonly version: string; readonly notes: readonly string[] }
  | { readonly usable: false; readonly reason: string; readonly fix: string };

/** A length-prefixed message, in either direction. Every frame from a sandbox is untrusted. */
export interface Frame {
  readonly header: Readonly<Record<string, unknown>> & { readonly type: string };
  readonly body: Uint8Array;
}

export interface FrameChannel {
  /** Resolves when the transport has accepted the bytes (back-pressure). Rejects when the channel is closed. */
  send(header: Frame["header"], body?: Uint8Array): Promise<void>;
  /** The next frame, or null when the other side has closed the channel. One reader at a time. Rejects when the bytes are not a frame. */
  receive(): Promise<Frame | null>;
  close(): void;
}

/** How a sandbox ended. `closed` means that the host closed it. `detail` is a full sentence. */
export interface Death {
  readonly cause: "closed" | "exited" | "killed" | "out_of_memory" | "expired";
  readonly detail: string;
  readonly exitCode?: number;
  readonly signal?: string;
}

/** Measured by the host, never reported by the worker. */
export interface Usage {
  /** Highest value since the last resetPeak(). */
  readonly peakMemoryBytes: number;
  /** CPU time of all processes of the sandbox since it was opened. */
  readonly cpuMs: number;
  /** Processes that were killed for using too much memory since the sandbox was opened: by the kernel, or by the watcher where there is no cgroup. */
  readonly memoryKills: number;
}

/** The host's handle on one sandbox. It is never returned to a pool. */
export interface Lease extends AsyncDisposable {
  readonly id: string;
  readonly driver: DriverName;
  readonly start: "restored" | "forked" | "cold";
  /** The first cell would be slow because it touches restored memory for the first time. The pool sends `warm` to the worker in advance. */
  readonly needsWarmUp?: boolean;
  readonly channel: FrameChannel;
  /** Settles once, when the last process of the sandbox is known to be dead. Never rejects. */
  readonly died: Promise<Death>;
  usage(): Promise<Usage>;
  /** Returns the usage up to now and restarts the measurement of the peak. */
  resetPeak(): Promise<Usage>;
  /** Idempotent. Resolves as soon as no process of the sandbox can run. Its files may be removed later, in the background. */
  close(): Promise<void>;
}

export interface SandboxDriver extends AsyncDisposable {
  readonly name: DriverName;
  /** How a failed cell is undone: it ran in a forked child, or the committed cells are replayed in a new sandbox. */
  readonly rollback: "fork" | "replay";
  /** Cheap, starts no sandbox, never throws. */
  preflight(): Promise<Preflight>;
  /** Resolves when the worker has answered `hello`. Rejects with NoSandboxError. Leaves nothing behind on abort or failure. */
  open(options: OpenOptions): Promise<Lease>;
  /** Creates what every open() needs (zygote, memory image). Idempotent. open() calls it if necessary. */
  prepare(options: { readonly snapshot: Snapshot; readonly signal?: AbortSignal }): Promise<void>;
}

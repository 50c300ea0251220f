import { orAbort } from "../concurrency/or-abort.ts";
import type { Limiter } from "../concurrency/create-limiter.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { undoneFrame } from "../protocol/worker-frames.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import { createCommittedCells, type CellSource, type CommittedCells } from "./committed-cells.ts";
import type { ExecutedCell } from "./run-cell.ts";

export interface SessionStateOptions {
  readonly rollback: "fork" | "replay";
  readonly limits: SandboxLimits;
  readonly queue: Limiter;
  readonly take: (signal?: AbortSignal) => Promise<TakenLease>;
  /** Sends the cell's inputs to the sandbox and runs the cell again. Rejects on abort. */
  readonly replayCell: (sandbox: SessionSandbox, cell: CellSource, signal?: AbortSignal) => Promise<ExecutedCell>;
  /** Whether an input that these cells used has changed since. */
  readonly haveInputsChanged: (cells: readonly CellSource[]) => boolean;
}

/** A sandbox that a cell session holds. */
export interface SessionSandbox extends TakenLease {
  /** Aliases of the inputs that it has received. */
  readonly sentAliases: Set<string>;
  readonly expiresAt: number;
  hasRunCells: boolean;
  /** A cell is running; if the sandbox dies now, the outcome of that cell says why. */
  isBusy: boolean;
  /** The committed cells were replayed in it and no cell has succeeded since. If it dies now, a replayed cell may be the cause. */
  isSuspect: boolean;
}

/** What happened to the variables when a sandbox was replaced; reported in the next outcome. */
export type SandboxReplacement =
  | { readonly variables: "replayed"; readonly cells: number }
  | { readonly variables: "lost"; readonly cells: number; readonly because: string };

/**
 * `empty`: no sandbox; the next cell takes one and replays the committed cells in it. `live`: a sandbox holds the variables. `recovering`: after a
 * failed cell, the committed cells are being replayed in the background.
 */
type Phase =
  | { readonly name: "empty" }
  | { readonly name: "live"; readonly sandbox: SessionSandbox }
  | { readonly name: "recovering"; readonly done: Promise<void> }
  | { readonly name: "closed" };

/** The variables of a cell session: the sandbox that holds them, and the committed cells from which a new sandbox can rebuild them. */
export class SessionState {
  readonly #options: SessionStateOptions;
  readonly #committed: CommittedCells = createCommittedCells();
  readonly #closed = new AbortController();
  #phase: Phase = { name: "empty" };
  #replacement: SandboxReplacement | null = null;
  /** A sandbox died right after a replay. The cells are not replayed again, because one of them may have killed it. */
  #isReplayUnsafe = false;
  #closing: Promise<unknown> = Promise.resolve();

  constructor(options: SessionStateOptions) {
    this.#options = options;
  }

  get sandbox(): SessionSandbox | null {
    return this.#phase.name === "live" ? this.#phase.sandbox : null;
  }

  get isClosed(): boolean {
    return this.#phase.name === "closed";
  }

  /** Returns the current sandbox, or a new one with the variables of the committed cells. Rejects with SESSION_CLOSED, or if no sandbox is available. */
  async obtainSandbox(signal?: AbortSignal): Promise<SessionSandbox> {
    const { sandbox } = this;
    if (sandbox !== null && Date.now() <= sandbox.expiresAt) return sandbox;
    if (sandbox !== null) this.discard(sandbox);
    const restored = await this.#restore(signal);
    this.#use(restored);
    if (this.isClosed) throw sessionClosed();
    return restored;
  }

  /** Waits for a background recovery, if one runs. */
  async recovered(signal?: AbortSignal): Promise<void> {
    if (this.#phase.name === "recovering") await orAbort(this.#phase.done, signal);
  }

  canReplay(): boolean {
    return this.#committed.canReplay();
  }

  forbidReplay(): void {
    this.#committed.forbidReplay();
  }

  /** Records a finished cell. Commits it if it succeeded (`cell` is null for a query), and replaces an unusable sandbox in the background. */
  settle(sandbox: SessionSandbox, executed: ExecutedCell, cell: CellSource | null): void {
    if (executed.status === "ok" && !executed.aborted && cell !== null) {
      this.#committed.add(cell, executed);
      sandbox.isSuspect = false;
      if (this.#options.rollback === "replay" && !this.canReplay()) prepareFork(sandbox);
    }
    if (executed.status === "sandbox_lost" && sandbox.isSuspect && !hasLeaseExpired(executed)) this.#isReplayUnsafe = true;
    if (executed.leaseUsable) return;
    this.discard(sandbox);
    this.#recoverInBackground();
  }

  /** Goes back to the state before the last committed cell: in the worker if it still has that state, otherwise by a replay in a new sandbox. */
  async undo(signal?: AbortSignal): Promise<void> {
    await this.recovered(signal);
    const { sandbox } = this;
    if (!this.#committed.dropLast() || sandbox === null || (await undoInWorker(sandbox))) return;
    this.discard(sandbox);
    this.#recoverInBackground();
  }

  /** Returns what happened to the variables at the last replacement of a sandbox, once. */
  takeReplacement(): SandboxReplacement | null {
    const replacement = this.#replacement;
    this.#replacement = null;
    return replacement;
  }

  /** Closes the sandbox and returns whether there was one. */
  async release(): Promise<boolean> {
    if (this.sandbox === null) return false;
    this.discard(this.sandbox);
    await this.#closing;
    return true;
  }

  /** Kills the sandbox, then waits for the running cell, a running recovery and every sandbox that is still closing. */
  async close(runningCell: Promise<unknown>): Promise<void> {
    const phase = this.#phase;
    this.#phase = { name: "closed" };
    this.#closed.abort(sessionClosed());
    if (phase.name === "live") this.discard(phase.sandbox);
    await runningCell;
    if (phase.name === "recovering") await phase.done;
    await this.#closing;
  }

  /** Closes a sandbox without waiting for it. */
  discard(sandbox: SessionSandbox): void {
    if (this.sandbox === sandbox) this.#phase = { name: "empty" };
    this.#closing = Promise.allSettled([this.#closing, sandbox.lease.close()]);
  }

  #use(sandbox: SessionSandbox): void {
    if (this.isClosed) this.discard(sandbox);
    else this.#phase = { name: "live", sandbox };
  }

  /** Replays the committed cells in a new sandbox, so that the next cell does not have to wait for it. If that fails, the next cell tries again. */
  #recoverInBackground(): void {
    if (this.isClosed || this.#committed.cells.length === 0) return;
    const done = this.#restore().then(
      (sandbox) => this.#use(sandbox),
      () => {
        if (this.#phase.name === "recovering") this.#phase = { name: "empty" };
      },
    );
    this.#phase = { name: "recovering", done };
  }

  /** Takes a new sandbox and replays the committed cells in it. If they cannot be replayed, returns a sandbox without their variables. */
  async #restore(signal?: AbortSignal): Promise<SessionSandbox> {
    const sandbox = await this.#takeSandbox(signal);
    const { length } = this.#committed.cells;
    if (length === 0) return sandbox;
    const obstacle = this.#findObstacle();
    if (obstacle !== null) {
      this.#loseVariables(obstacle);
      return sandbox;
    }
    const failure = await this.#committed
      .replay((cell) => this.#options.replayCell(sandbox, cell, signal))
      .catch(async (error: unknown) => {
        await sandbox.lease.close(); // the cells stay committed: the next call replays them
        throw error;
      });
    if (failure === null) {
      this.#replacement = { variables: "replayed", cells: length };
      sandbox.isSuspect = true;
      return sandbox;
    }
    await sandbox.lease.close();
    this.#loseVariables(failure);
    return await this.#takeSandbox(signal);
  }

  /** Returns why the committed cells cannot be replayed, or null if they can. */
  #findObstacle(): string | null {
    if (this.#isReplayUnsafe) {
      this.#isReplayUnsafe = false;
      return "the sandbox was lost again right after the earlier cells were run again in it";
    }
    if (!this.canReplay()) return "the sandbox was lost, and running the earlier cells again would be slow or give other results";
    if (this.#options.haveInputsChanged(this.#committed.cells))
      return "the sandbox was lost, and an input of the earlier cells has changed since";
    return null;
  }

  #loseVariables(because: string): void {
    this.#replacement = { variables: "lost", cells: this.#committed.cells.length, because };
    this.#committed.clear();
  }

  async #takeSandbox(signal?: AbortSignal): Promise<SessionSandbox> {
    const { take, limits, queue } = this.#options;
    const taken = await take(signal === undefined ? this.#closed.signal : AbortSignal.any([signal, this.#closed.signal]));
    const expiresAt = Date.now() + limits.leaseTimeoutMs;
    const sandbox: SessionSandbox = { ...taken, sentAliases: new Set(), expiresAt, hasRunCells: false, isBusy: false, isSuspect: false };
    const expiry = setTimeout(() => {
      void queue.run(async () => this.discard(sandbox)); // `runCell` ends a cell that runs at this moment
    }, limits.leaseTimeoutMs).unref();
    void taken.lease.died.then(({ cause }) => {
      clearTimeout(expiry);
      if (this.sandbox !== sandbox) return;
      this.#phase = { name: "empty" };
      this.#isReplayUnsafe ||= sandbox.isSuspect && !sandbox.isBusy && cause !== "closed";
    });
    return sandbox;
  }
}

export function sessionClosed(): UsageError {
  return new UsageError({ code: "SESSION_CLOSED", message: "The cell session is closed." });
}

/** Returns whether the worker still had the state from before the last cell. */
async function undoInWorker({ lease }: SessionSandbox): Promise<boolean> {
  try {
    await lease.channel.send({ type: "undo" });
    return undoneFrame.safeParse((await lease.channel.receive())?.header).data?.ok === true;
  } catch {
    return false;
  }
}

/** Asks the worker to fork ahead of the next cell. From now on cells run in forks, and this keeps the fork out of the next call's time. */
function prepareFork({ lease }: SessionSandbox): void {
  lease.channel.send({ type: "spare" }).catch(() => {}); // if the sandbox is lost, the next cell reports it
}

/** Whether the sandbox ended because its lease expired, which is no fault of the cells that ran in it. */
function hasLeaseExpired({ error }: ExecutedCell): boolean {
  return error?.limit?.name === "leaseTimeoutMs";
}

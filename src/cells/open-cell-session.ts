import type { ArtifactChecker } from "../artifacts/create-artifact-checker.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import type { ByteCount } from "../sandbox/arriving-contents.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import { hasChanged, SessionInputs, sizeOf, type CellInput, type ChangedInput, type VisibleInput } from "./cell-inputs.ts";
import type { CellSource } from "./committed-cells.ts";
import { roundMs, runCell, type ExecutedCell, type RunCellOptions } from "./run-cell.ts";
import { sessionClosed, SessionState, type SessionSandbox } from "./session-state.ts";

export interface CellRequest {
  readonly code: string;
  /** Inputs in addition to the bound ones. Those that the code can see are sent to the sandbox before it runs. */
  readonly inputs?: ReadonlyMap<string, CellInput>;
  /** Local names for aliases. Every alias is also bound under its own name. */
  readonly names?: Readonly<Record<string, string>>;
  /** The artifact kinds that the cell must emit, exactly. Default: any artifacts are accepted. */
  readonly expect?: readonly ("image" | "chart")[];
  /**
   * Whether the cell is a query on which later cells do not depend. A query is not replayed when a sandbox is replaced, and if it fails, the sandbox is
   * closed, because nothing was forked to go back to.
   */
  readonly isQuery?: boolean;
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Bytes of pictures and data that the cells of the turn have sent. Grows as they arrive. Default: the cell is a turn of its own. */
  readonly turnArtifacts?: ByteCount | undefined;
  /** Called when the sandbox is ready and the cell is about to run. */
  readonly onStart?: (sandbox: CellOutcome["sandbox"] & { reused: boolean; inputAliasCount: number; inputsBytes: number }) => void;
  /** A place in the session's queue that the caller already holds. The cell then runs without waiting. */
  readonly place?: QueuePlace;
  readonly signal?: AbortSignal;
}

export interface QueuePlace {
  /** When the caller started to wait for it, by `performance.now()`. */
  readonly queuedAt: number;
}

/** A sequence of cells over one state. Each cell either takes effect completely or not at all. When a sandbox is replaced, the next outcome says what happened to the variables. */
export interface CellSession extends AsyncDisposable {
  /** Binds bytes to an alias. They are sent to a sandbox once, before the first cell that can see them. */
  bind(alias: string, input: CellInput): void;
  /** Runs a cell after those that came before. Resolves with an outcome whatever the code did; rejects if no sandbox is available, or on abort. */
  run(request: CellRequest): Promise<CellOutcome>;
  /** Goes back to the state before the last successful cell. If that is impossible, the next outcome reports the variables as lost. An abort undoes nothing. */
  undo(signal?: AbortSignal, place?: QueuePlace): Promise<void>;
  /** Closes the sandbox between two cells and returns whether there was one. The next cell gets a new one. */
  release(): Promise<boolean>;
  close(): Promise<void>;
}

export interface CellSessionOptions {
  /** "fork": the worker forks before every cell. "replay": it runs cells in place as long as they can be replayed quickly. */
  readonly rollback: "fork" | "replay";
  readonly limits: SandboxLimits;
  readonly take: (signal?: AbortSignal) => Promise<TakenLease>;
  readonly artifactChecker: ArtifactChecker;
  /** The queue in which cells wait. A caller that shares it passes its place with each request. Default: a queue of the session's own. */
  readonly queue?: Limiter;
  /** A sandbox that runs nothing for this long is closed. Default: 5 minutes. */
  readonly idleMs?: number;
}

/** Opens a session without a sandbox; the first cell takes one. Returns a plain object, so that callers can wrap single methods of it. */
export function openCellSession(options: CellSessionOptions): CellSession {
  const session = new OpenCellSession(options);
  return {
    bind: (alias, input) => session.bind(alias, input),
    run: (request) => session.run(request),
    undo: (signal, place) => session.undo(signal, place),
    release: () => session.release(),
    close: () => session.close(),
    [Symbol.asyncDispose]: () => session.close(),
  };
}

const DEFAULT_IDLE_MS = 5 * 60_000;

class OpenCellSession {
  readonly #options: CellSessionOptions;
  readonly #queue: Limiter;
  readonly #inputs: SessionInputs;
  readonly #state: SessionState;
  #running: Promise<unknown> = Promise.resolve();
  #idleTimer: NodeJS.Timeout | undefined;
  #cellCount = 0;

  constructor(options: CellSessionOptions) {
    const { rollback, limits, take, queue = createLimiter({ places: 1 }) } = options;
    this.#options = options;
    this.#queue = queue;
    this.#inputs = new SessionInputs(limits);
    this.#state = new SessionState({
      rollback,
      limits,
      queue,
      take,
      replayCell: (sandbox, cell, signal) => this.#replay(sandbox, cell, signal),
      haveInputsChanged: (cells) => this.#inputs.haveChanged(cells),
    });
  }

  bind(alias: string, input: CellInput): void {
    const wasBound = this.#inputs.bind(alias, input);
    if (wasBound) this.#state.forbidReplay();
    this.#state.sandbox?.sentAliases.delete(alias);
  }

  run(request: CellRequest): Promise<CellOutcome> {
    const { place = { queuedAt: performance.now() }, signal } = request;
    const work = (): Promise<CellOutcome> => this.#runNow(request, place.queuedAt).finally(() => this.#startIdleTimer());
    return this.#runExclusively(work, signal, request.place);
  }

  undo(signal?: AbortSignal, place?: QueuePlace): Promise<void> {
    return this.#runExclusively(() => this.#state.undo(signal), signal, place);
  }

  release(): Promise<boolean> {
    return this.#runExclusively(() => this.#state.release());
  }

  async close(): Promise<void> {
    await this.#state.close(this.#running); // not for the whole queue, which others may share
    clearTimeout(this.#idleTimer);
  }

  /** Waits for the queue, unless the caller already holds a place in it. */
  #runExclusively<Value>(work: () => Promise<Value>, signal?: AbortSignal, place?: QueuePlace): Promise<Value> {
    const start = (): Promise<Value> => {
      const running = work();
      this.#running = running.catch(() => {});
      return running;
    };
    return place === undefined ? this.#queue.run(start, signal) : start();
  }

  async #runNow(request: CellRequest, queuedAt: number): Promise<CellOutcome> {
    if (this.#state.isClosed) throw sessionClosed();
    const { signal, isQuery = false, expect = null, onOutput, turnArtifacts } = request;
    const cell = { code: request.code, names: request.names ?? {} };
    refuseLongCode(Buffer.byteLength(cell.code), this.#options.limits);
    clearTimeout(this.#idleTimer);
    const startedAt = performance.now();
    this.#inputs.add(request.inputs ?? new Map());
    await this.#state.recovered(signal);
    // Checked before a sandbox is taken, and again when the inputs are sent.
    this.#inputs.refuseTooLarge(this.#inputs.visibleTo(cell), this.#state.sandbox?.sentAliases ?? new Set());
    const sandbox = await this.#state.obtainSandbox(signal);
    const visible = this.#inputs.visibleTo(cell);
    const inputsChanged = await this.#sendInputs(sandbox, visible, signal);
    const { lease, start, hasRunCells: reused } = sandbox;
    const inputsBytes = visible.reduce((sum, { bound }) => sum + sizeOf(bound.input), 0);
    request.onStart?.({ id: lease.id, driver: lease.driver, start, reused, inputAliasCount: visible.length, inputsBytes });
    sandbox.hasRunCells = true;
    const readyAt = performance.now();
    const mustFork = !isQuery && (this.#options.rollback === "fork" || !this.#state.canReplay());
    const rollback = mustFork ? "fork" : "none";
    const executed = await this.#execute(sandbox, cell, { rollback, expect, turnArtifacts, onOutput, signal });
    this.#state.settle(sandbox, executed, isQuery ? null : cell);
    if (executed.aborted) throw signal?.reason;
    const { leaseUsable: _, aborted: __, runMs, ...outcome } = executed;
    const sandboxReplaced = this.#state.takeReplacement();
    return {
      ...outcome,
      diagnostics: {
        ...outcome.diagnostics,
        ...(sandboxReplaced && { sandboxReplaced }),
        ...(inputsChanged.length > 0 && { inputsChanged }),
      },
      timing: {
        queueMs: roundMs(startedAt - queuedAt),
        startMs: roundMs(readyAt - startedAt),
        runMs: roundMs(runMs),
        totalMs: roundMs(performance.now() - queuedAt),
      },
      sandbox: { id: lease.id, driver: lease.driver, start },
    };
  }

  async #replay(sandbox: SessionSandbox, cell: CellSource, signal?: AbortSignal): Promise<ExecutedCell> {
    await this.#sendInputs(sandbox, this.#inputs.visibleTo(cell), signal);
    const executed = await this.#execute(sandbox, cell, { rollback: "none", expect: null, signal });
    if (executed.aborted) throw signal?.reason;
    return executed;
  }

  async #execute(
    sandbox: SessionSandbox,
    { code, names }: CellSource,
    options: Pick<RunCellOptions, "rollback" | "expect" | "turnArtifacts" | "onOutput" | "signal">,
  ): Promise<ExecutedCell> {
    const { limits, artifactChecker } = this.#options;
    this.#cellCount += 1;
    sandbox.isBusy = true;
    try {
      return await runCell({
        ...options,
        lease: sandbox.lease,
        cell: this.#cellCount,
        code: Buffer.from(code),
        names,
        limits,
        leaseLeftMs: sandbox.expiresAt - Date.now(),
        artifactChecker,
      });
    } finally {
      sandbox.isBusy = false;
    }
  }

  /** Sends missing and changed inputs. Returns those that changed since an earlier cell. On abort, stops sending and discards the sandbox. */
  async #sendInputs(sandbox: SessionSandbox, visible: readonly VisibleInput[], signal?: AbortSignal): Promise<ChangedInput[]> {
    this.#inputs.refuseTooLarge(visible, sandbox.sentAliases);
    const changed = visible.filter(hasChanged);
    if (changed.some(({ alias }) => sandbox.sentAliases.has(alias))) this.#state.forbidReplay();
    const discard = (): void => this.#state.discard(sandbox);
    signal?.addEventListener("abort", discard, { once: true });
    try {
      await this.#inputs.send(visible, sandbox);
    } catch (error) {
      discard();
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", discard);
    }
    return changed.map(({ alias, bound }) => ({ alias, bytes: sizeOf(bound.input) }));
  }

  #startIdleTimer(): void {
    if (this.#state.isClosed) return;
    this.#idleTimer = setTimeout(() => void this.release(), this.#options.idleMs ?? DEFAULT_IDLE_MS).unref();
  }
}

function refuseLongCode(bytes: number, { codeBytes }: SandboxLimits): void {
  if (bytes <= codeBytes) return;
  throw new UsageError({
    code: "CODE_TOO_LONG",
    message: `The code has ${bytes} bytes, ${codeBytes} are allowed.`,
    hint: "Pass data as inputs instead of writing it into the code.",
    details: { allowed: codeBytes, seen: bytes },
  });
}

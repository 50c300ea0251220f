import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { undoneFrame } from "../protocol/worker-frames.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { createLimiter, type Limiter } from "../concurrency/create-limiter.ts";
import { createCommittedCells, type CellText, type CommittedCells } from "./committed-cells.ts";
import { roundMs, runCell, type RanCell, type RunCellOptions } from "./run-cell.ts";
import { inputsSeenBy, refuseTooLarge, sendInput, sizeOf, type BoundInput, type CellInput } from "./cell-inputs.ts";

export interface CellRequest {
  readonly code: string;
  /** Inputs at hand besides those that were bound. Those that the code can see are shipped before it runs. */
  readonly inputs?: ReadonlyMap<string, CellInput>;
  /** Local names for aliases; aliases themselves are bound without asking. */
  readonly names?: Readonly<Record<string, string>>;
  /** Kinds that the cell must emit, exactly; without it any artifact is accepted. */
  readonly expect?: readonly ("image" | "chart")[];
  /**
   * A question of the host's own that leaves nothing behind which a later cell would miss: it is not run again when a sandbox is replaced, and there is
   * no way back before it. When it fails, the sandbox goes with it.
   */
  readonly isQuestion?: boolean;
  readonly onOutput?: (stream: "stdout" | "stderr", text: string) => void;
  /** Called when the sandbox is there and the cell is about to run. */
  readonly onStart?: (sandbox: CellOutcome["sandbox"] & { reused: boolean; inputAliasCount: number; inputsBytes: number }) => void;
  /** A place in the session's queue that the caller holds already: the cell runs at once. */
  readonly place?: HeldPlace;
  readonly signal?: AbortSignal;
}

export interface HeldPlace {
  /** When the caller began to wait for it, by `performance.now()`. */
  readonly askedAt: number;
}

/** A sequence of atomic cells over one sandbox at a time. When a sandbox has to be replaced, the session says what became of the variables. */
export interface CellSession extends AsyncDisposable {
  /** Binds bytes to an alias. They go to a sandbox once, before the first cell that can use them. */
  bind(alias: string, input: CellInput): void;
  /** Cells queue. Resolves with the outcome, whatever the code did; rejects when no sandbox can be had, or on abort. */
  run(request: CellRequest): Promise<CellOutcome>;
  /** Back to the state before the last cell that counted. Where that cannot be had, the next outcome says that the variables are lost. Rejects on abort, and then nothing is undone. */
  undo(signal?: AbortSignal, place?: HeldPlace): Promise<void>;
  /** Gives its sandbox up between two cells; whether there was one. The next cell gets another, and its outcome says what became of the variables. */
  release(): Promise<boolean>;
  close(): Promise<void>;
}

export interface CellSessionOptions {
  readonly rollback: "fork" | "replay";
  readonly limits: SandboxLimits;
  readonly take: (signal?: AbortSignal) => Promise<TakenLease>;
  readonly images: ImageChecker;
  /** Where its cells wait; who shares it passes the place that it holds. Default: a queue of its own. */
  readonly queue?: Limiter | undefined;
  /** A sandbox that runs nothing for this long is given up. */
  readonly idleMs?: number;
}

/** An input that a cell can see, as it is now. */
interface SeenInput {
  readonly alias: string;
  readonly bound: BoundInput;
  readonly version: string;
}

/** A sandbox that the session holds. */
interface Held extends TakenLease {
  /** Aliases of the inputs that it has, each as it was last given. */
  readonly shipped: Set<string>;
  readonly expiresAt: number;
  /** It has run a cell of this session. */
  reused: boolean;
  /** A cell runs in it, whose outcome says what ended it. */
  busy: boolean;
  /** The committed cells were run again in it, and no cell has succeeded since: what ends it now may well be one of them. */
  suspect: boolean;
}

/**
 * `empty`: no sandbox; the next cell opens one and runs the committed cells again in it. `live`: a sandbox holds their variables. `recovering`: they are being
 * run again in the background after a failed cell.
 */
type State =
  | { readonly name: "empty" }
  | { readonly name: "live"; readonly sandbox: Held }
  | { readonly name: "recovering"; readonly done: Promise<void> }
  | { readonly name: "closed" };

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

class OpenCellSession {
  readonly #options: CellSessionOptions;
  readonly #inputs = new Map<string, BoundInput>();
  readonly #committed: CommittedCells = createCommittedCells();
  readonly #queue: Limiter;
  readonly #ending = new AbortController();
  #state: State = { name: "empty" };
  #running: Promise<unknown> = Promise.resolve();
  /** What became of the variables, for the next outcome. */
  #replaced: Record<string, unknown> | null = null;
  /** A sandbox ended right after the committed cells were run again in it: they are not tried a third time. */
  #poisoned = false;
  #idle: NodeJS.Timeout | undefined;
  #cells = 0;
  #closing: Promise<unknown> = Promise.resolve();

  constructor(options: CellSessionOptions) {
    this.#options = options;
    this.#queue = options.queue ?? createLimiter({ places: 1 });
  }

  bind(alias: string, input: CellInput): void {
    const others = [...this.#inputs].reduce((sum, [name, other]) => (name === alias ? sum : sum + sizeOf(other.input)), 0);
    refuseTooLarge(alias, input, others, this.#options.limits);
    if (this.#inputs.has(alias)) this.#committed.forbidReplay();
    this.#inputs.set(alias, { input, given: null });
    this.#sandbox?.shipped.delete(alias);
  }

  run(request: CellRequest): Promise<CellOutcome> {
    const { place = { askedAt: performance.now() }, signal } = request;
    const work = (): Promise<CellOutcome> => this.#runNow(request, place.askedAt).finally(() => this.#rest());
    return this.#alone(work, signal, request.place);
  }

  undo(signal?: AbortSignal, place?: HeldPlace): Promise<void> {
    const work = async (): Promise<void> => {
      await this.#recovered(signal);
      const sandbox = this.#sandbox;
      if (!this.#committed.drop() || sandbox === null || (await undoInside(sandbox))) return;
      this.#discard(sandbox);
      this.#recover();
    };
    return this.#alone(work, signal, place);
  }

  release(): Promise<boolean> {
    return this.#alone(async () => {
      if (this.#sandbox === null) return false;
      this.#discard(this.#sandbox);
      await this.#closing;
      return true;
    });
  }

  async close(): Promise<void> {
    const before = this.#state;
    this.#state = { name: "closed" };
    this.#ending.abort(sessionClosed());
    if (before.name === "live") this.#discard(before.sandbox); // ends what runs
    await this.#running; // not the whole queue: others may share it, and what they do is not the session's to wait for
    if (before.name === "recovering") await before.done;
    await this.#closing;
    clearTimeout(this.#idle);
  }

  /** Runs `work` when nothing else of the queue runs, which a caller with a place of its own has seen to. */
  #alone<Value>(work: () => Promise<Value>, signal?: AbortSignal, place?: HeldPlace): Promise<Value> {
    const start = (): Promise<Value> => {
      const running = work();
      this.#running = running.catch(() => {});
      return running;
    };
    return place === undefined ? this.#queue.run(start, signal) : start();
  }

  get #sandbox(): Held | null {
    return this.#state.name === "live" ? this.#state.sandbox : null;
  }

  async #runNow(request: CellRequest, asked: number): Promise<CellOutcome> {
    if (this.#state.name === "closed") throw sessionClosed();
    const { rollback, limits } = this.#options;
    const { signal, isQuestion = false } = request;
    const cell = { code: request.code, names: request.names ?? {} };
    refuseLongCode(Buffer.byteLength(cell.code), limits);
    clearTimeout(this.#idle);
    const started = performance.now();
    for (const [alias, input] of request.inputs ?? []) this.#inputs.set(alias, { input, given: this.#inputs.get(alias)?.given ?? null });
    await this.#recovered(signal);
    this.#refuseTooLarge(this.#seenBy(cell), this.#sandbox); // before a sandbox is taken for it
    const sandbox = await this.#obtain(signal);
    const seen = this.#seenBy(cell);
    const inputsChanged = await this.#shipInputs(sandbox, seen, signal);
    const { lease, start, reused } = sandbox;
    const inputsBytes = seen.reduce((sum, { bound }) => sum + sizeOf(bound.input), 0);
    request.onStart?.({ id: lease.id, driver: lease.driver, start, reused, inputAliasCount: seen.length, inputsBytes });
    sandbox.reused = true;
    const ready = performance.now();
    const mode = !isQuestion && (rollback === "fork" || !this.#committed.canReplay()) ? "fork" : "none";
    const ran = await this.#runIn(sandbox, { ...cell, rollback: mode, expect: request.expect, onOutput: request.onOutput, signal });
    this.#settle(sandbox, ran, isQuestion ? null : cell);
    if (ran.aborted) throw signal?.reason;
    const { leaseUsable: _, aborted: __, runMs, ...outcome } = ran;
    const replaced = this.#replaced;
    this.#replaced = null;
    return {
      ...outcome,
      diagnostics: {
        ...ran.diagnostics,
        ...(replaced && { sandboxReplaced: replaced }),
        ...(inputsChanged.length > 0 && { inputsChanged }),
      },
      timing: {
        queueMs: roundMs(started - asked),
        startMs: roundMs(ready - started),
        runMs: roundMs(runMs),
        totalMs: roundMs(performance.now() - asked),
      },
      sandbox: { id: lease.id, driver: lease.driver, start },
    };
  }

  /** Commits a cell that counts. A sandbox that cannot be used any more is replaced in the background. */
  #settle(sandbox: Held, ran: RanCell, cell: CellText | null): void {
    if (ran.status === "ok" && !ran.aborted && cell !== null) {
      this.#committed.add(cell, ran);
      sandbox.suspect = false;
      if (this.#options.rollback === "replay" && !this.#committed.canReplay()) askForSpare(sandbox);
    }
    if (ran.status === "sandbox_lost" && sandbox.suspect && !isExpired(ran)) this.#poisoned = true;
    if (ran.leaseUsable) return;
    this.#discard(sandbox);
    this.#recover();
  }

  async #runIn(
    sandbox: Held,
    { code, names, ...more }: CellText & Pick<RunCellOptions, "rollback" | "onOutput" | "signal"> & Pick<CellRequest, "expect">,
  ): Promise<RanCell> {
    const { limits, images } = this.#options;
    this.#cells += 1;
    sandbox.busy = true;
    return await runCell({
      lease: sandbox.lease,
      cell: this.#cells,
      code: Buffer.from(code),
      names,
      limits,
      leaseLeftMs: sandbox.expiresAt - Date.now(),
      images,
      ...more,
      expect: more.expect ?? null,
    }).finally(() => {
      sandbox.busy = false;
    });
  }

  /** Throws when the file of one is gone. */
  #seenBy({ code, names }: CellText): SeenInput[] {
    return inputsSeenBy(code, names, this.#inputs).map(([alias, bound]) => ({ alias, bound, version: bound.input.version?.() ?? "" }));
  }

  #refuseTooLarge(seen: readonly SeenInput[], sandbox: Held | null): void {
    const shipped = new Set(sandbox?.shipped).difference(new Set(seen.map(({ alias }) => alias)));
    let total = [...shipped].reduce((sum, alias) => sum + sizeOf(this.#inputs.get(alias)!.input), 0);
    for (const { alias, bound } of seen) {
      refuseTooLarge(alias, bound.input, total, this.#options.limits);
      total += sizeOf(bound.input);
    }
  }

  /** Sends what the sandbox does not have, or not as it is now. Returns the inputs that are others than the ones that a cell was given before. */
  async #shipInputs(to: Held, seen: readonly SeenInput[], signal?: AbortSignal): Promise<ChangedInput[]> {
    this.#refuseTooLarge(seen, to);
    const wanted = seen.filter(({ alias, bound, version }) => !to.shipped.has(alias) || bound.given !== version);
    const changed = wanted.filter(({ bound, version }) => bound.given !== null && bound.given !== version);
    if (changed.some(({ alias }) => to.shipped.has(alias))) this.#committed.forbidReplay();
    const giveUp = (): void => this.#discard(to); // half an input is of no use
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      for (const { alias, bound, version } of wanted) {
        await sendInput(to.lease, alias, bound.input);
        to.shipped.add(alias);
        bound.given = version;
      }
    } catch (error) {
      this.#discard(to);
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    return changed.map(({ alias, bound }) => ({ alias, bytes: sizeOf(bound.input) }));
  }

  /** The sandbox at hand, or a new one in which the committed cells were replayed. */
  async #obtain(signal?: AbortSignal): Promise<Held> {
    const current = this.#sandbox;
    if (current !== null && Date.now() <= current.expiresAt) return current;
    if (current !== null) this.#discard(current);
    const fresh = await this.#restore(signal);
    this.#keep(fresh);
    if (this.#state.name === "closed") throw sessionClosed();
    return fresh;
  }

  #keep(fresh: Held): void {
    if (this.#state.name === "closed") this.#discard(fresh);
    else this.#state = { name: "live", sandbox: fresh };
  }

  /** A new sandbox with the variables of the committed cells, or one without them when they are lost. */
  async #restore(signal?: AbortSignal): Promise<Held> {
    const fresh = await this.#take(signal);
    const { length } = this.#committed.cells;
    if (length === 0) return fresh;
    const because = this.#whyNoReplay();
    if (because !== null) {
      this.#lose(because);
      return fresh;
    }
    const failure = await this.#committed
      .replay(async (cell) => {
        await this.#shipInputs(fresh, this.#seenBy(cell), signal);
        const ran = await this.#runIn(fresh, { ...cell, rollback: "none", signal });
        if (ran.aborted) throw signal?.reason;
        return ran;
      })
      .catch(async (error: unknown) => {
        await fresh.lease.close(); // the cells still count: the next call runs them again
        throw error;
      });
    if (failure === null) {
      this.#replaced = { variables: "replayed", cells: length };
      fresh.suspect = true;
      return fresh;
    }
    await fresh.lease.close();
    this.#lose(failure);
    return await this.#take(signal);
  }

  #whyNoReplay(): string | null {
    if (this.#poisoned) {
      this.#poisoned = false;
      return "the sandbox was lost again right after the earlier cells were run again in it";
    }
    if (!this.#committed.canReplay()) return "the sandbox was lost, and the earlier cells cannot be run again exactly and quickly";
    const used = this.#committed.cells.flatMap(({ code, names }) => inputsSeenBy(code, names, this.#inputs));
    const isSame = used.every(([, { input, given }]) => given === null || versionOf(input) === given);
    return isSame ? null : "the sandbox was lost, and an input is no longer what the earlier cells were given";
  }

  #lose(because: string): void {
    this.#replaced = { variables: "lost", cells: this.#committed.cells.length, because };
    this.#committed.clear();
  }

  async #take(signal?: AbortSignal): Promise<Held> {
    const { take, limits } = this.#options;
    const taken = await take(signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal]));
    const expiresAt = Date.now() + limits.leaseTimeoutMs;
    const fresh: Held = { ...taken, shipped: new Set(), expiresAt, reused: false, busy: false, suspect: false };
    const expiry = setTimeout(() => {
      void this.#queue.run(async () => this.#discard(fresh)); // a cell that runs now is ended at the same time
    }, limits.leaseTimeoutMs).unref();
    void taken.lease.died.then(({ cause }) => {
      clearTimeout(expiry);
      if (this.#sandbox !== fresh) return;
      this.#state = { name: "empty" };
      this.#poisoned ||= fresh.suspect && !fresh.busy && cause !== "closed";
    });
    return fresh;
  }

  #discard(gone: Held): void {
    if (this.#sandbox === gone) this.#state = { name: "empty" };
    this.#closing = Promise.allSettled([this.#closing, gone.lease.close()]);
  }

  /** In the background, so that the next cell finds the state from before the failed one. What goes wrong shows when that cell asks again. */
  #recover(): void {
    if (this.#state.name === "closed" || this.#committed.cells.length === 0) return;
    const done = this.#restore().then(
      (fresh) => this.#keep(fresh),
      () => {
        if (this.#state.name === "recovering") this.#state = { name: "empty" };
      },
    );
    this.#state = { name: "recovering", done };
  }

  async #recovered(signal?: AbortSignal): Promise<void> {
    if (this.#state.name === "recovering") await orAbort(this.#state.done, signal);
  }

  #rest(): void {
    if (this.#state.name === "closed") return;
    this.#idle = setTimeout(() => void this.release(), this.#options.idleMs ?? 5 * 60_000).unref();
  }
}

/** A file that is another than the one that the sandbox had. */
interface ChangedInput {
  readonly alias: string;
  readonly bytes: number;
}

function versionOf({ version }: CellInput): string | null {
  try {
    return version?.() ?? "";
  } catch {
    return null; // it is gone
  }
}

/** Whether the worker still had the state from before the cell. */
async function undoInside({ lease }: Held): Promise<boolean> {
  try {
    await lease.channel.send({ type: "undo" });
    return undoneFrame.safeParse((await lease.channel.receive())?.header).data?.ok === true;
  } catch {
    return false;
  }
}

/** From now on cells run in forks; a fork that is made ahead is off the next call's path. */
function askForSpare({ lease }: Held): void {
  lease.channel.send({ type: "spare" }).catch(() => {}); // a sandbox that is gone shows when the next cell runs
}

function sessionClosed(): UsageError {
  return new UsageError({ code: "SESSION_CLOSED", message: "The session is closed." });
}

/** The sandbox's time was over: that says nothing about the cells that ran in it. */
function isExpired({ error }: RanCell): boolean {
  return error?.limit?.name === "leaseTimeoutMs";
}

function refuseLongCode(bytes: number, limits: SandboxLimits): void {
  if (bytes <= limits.codeBytes) return;
  throw new UsageError({
    code: "CODE_TOO_LONG",
    message: `The code has ${bytes} bytes, ${limits.codeBytes} are allowed.`,
    hint: "Pass data as inputs instead of writing it into the code.",
    details: { allowed: limits.codeBytes, seen: bytes },
  });
}

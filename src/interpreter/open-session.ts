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
import { inputsSeenBy, refuseTooLarge, sendInput, sizeOf, type SessionInput } from "./session-inputs.ts";

export interface CellRequest {
  readonly code: string;
  /** Inputs at hand besides those that were bound. Those that the code can see are shipped before it runs. */
  readonly inputs?: ReadonlyMap<string, SessionInput>;
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
export interface Session extends AsyncDisposable {
  /** Binds bytes to an alias. They go to a sandbox once, before the first cell that can use them. */
  bind(alias: string, input: SessionInput): void;
  /** Cells queue. Resolves with the outcome, whatever the code did; rejects when no sandbox can be had, or on abort. */
  run(request: CellRequest): Promise<CellOutcome>;
  /** Back to the state before the last cell that counted. Where that cannot be had, the next outcome says that the variables are lost. Rejects on abort, and then nothing is undone. */
  undo(signal?: AbortSignal, place?: HeldPlace): Promise<void>;
  /** Gives its sandbox up between two cells; whether there was one. The next cell gets another, and its outcome says what became of the variables. */
  release(): Promise<boolean>;
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly rollback: "fork" | "replay";
  readonly limits: SandboxLimits;
  readonly take: (signal?: AbortSignal) => Promise<TakenLease>;
  readonly images: ImageChecker;
  /** Where its cells wait; who shares it passes the place that it holds. Default: a queue of its own. */
  readonly queue?: Limiter | undefined;
  /** A sandbox that runs nothing for this long is given up. */
  readonly idleMs?: number;
}

/** A sandbox that the session holds. */
interface Held extends TakenLease {
  /** The inputs that it has: alias to version. */
  readonly shipped: Map<string, string>;
  readonly expiresAt: number;
  /** It has run a cell of this session. */
  reused: boolean;
  /** A cell runs in it, whose outcome says what ended it. */
  busy: boolean;
  /** The committed cells were run again in it, and no cell has succeeded since: what ends it now may well be one of them. */
  suspect: boolean;
}

export function openSession(options: SessionOptions): Session {
  const session = new CellSession(options);
  return {
    bind: (alias, input) => session.bind(alias, input),
    run: (request) => session.run(request),
    undo: (signal, place) => session.undo(signal, place),
    release: () => session.release(),
    close: () => session.close(),
    [Symbol.asyncDispose]: () => session.close(),
  };
}

/**
 * The state of a cell session: `fresh` while no cell is committed, `live` while a sandbox holds the variables of the committed cells, `recovering` while
 * they are run again in another one, `lost` when that cannot be done (the committed cells are then forgotten, and the next outcome says so), `closed`.
 */
class CellSession {
  readonly #options: SessionOptions;
  readonly #inputs = new Map<string, SessionInput>();
  readonly #committed: CommittedCells = createCommittedCells();
  readonly #queue: Limiter;
  readonly #ending = new AbortController();
  /** The sandbox at hand, and what the last one had been given. */
  #held: Held | null = null;
  #shipped: ReadonlyMap<string, string> = new Map();
  #running: Promise<unknown> = Promise.resolve();
  #recovering: Promise<void> | null = null;
  /** What became of the variables, for the next outcome. */
  #replaced: Record<string, unknown> | null = null;
  /** A sandbox ended right after the committed cells were run again in it: they are not tried a third time. */
  #poisoned = false;
  #idle: NodeJS.Timeout | undefined;
  #cells = 0;
  #closed = false;
  #closing: Promise<unknown> = Promise.resolve();

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#queue = options.queue ?? createLimiter({ places: 1 });
  }

  bind(alias: string, input: SessionInput): void {
    const others = [...this.#inputs].reduce((sum, [name, other]) => (name === alias ? sum : sum + sizeOf(other)), 0);
    refuseTooLarge(alias, input, others, this.#options.limits);
    if (this.#inputs.has(alias)) this.#committed.forbidReplay();
    this.#inputs.set(alias, input);
    this.#held?.shipped.delete(alias);
  }

  run(request: CellRequest): Promise<CellOutcome> {
    const { place = { askedAt: performance.now() }, signal } = request;
    const work = (): Promise<CellOutcome> => this.#runNow(request, place.askedAt).finally(() => this.#rest());
    return this.#alone(work, signal, request.place);
  }

  undo(signal?: AbortSignal, place?: HeldPlace): Promise<void> {
    const work = async (): Promise<void> => {
      await orAbort(this.#recovering ?? Promise.resolve(), signal);
      if (!this.#committed.drop() || this.#held === null || (await undoInside(this.#held))) return;
      this.#discard(this.#held);
      this.#recover();
    };
    return this.#alone(work, signal, place);
  }

  release(): Promise<boolean> {
    return this.#alone(async () => {
      if (this.#held === null) return false;
      this.#discard(this.#held);
      await this.#closing;
      return true;
    });
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

  async close(): Promise<void> {
    this.#closed = true;
    this.#ending.abort(sessionClosed());
    await this.#held?.lease.close(); // ends what runs
    await this.#running; // not the whole queue: others may share it, and what they do is not the session's to wait for
    await this.#recovering;
    if (this.#held !== null) this.#discard(this.#held); // what was being opened meanwhile
    await this.#closing;
    clearTimeout(this.#idle);
  }

  async #runNow(request: CellRequest, asked: number): Promise<CellOutcome> {
    if (this.#closed) throw sessionClosed();
    const { rollback, limits } = this.#options;
    const { signal, isQuestion = false } = request;
    const cell = { code: request.code, names: request.names ?? {} };
    refuseLongCode(Buffer.byteLength(cell.code), limits);
    clearTimeout(this.#idle);
    const started = performance.now();
    for (const [alias, input] of request.inputs ?? []) this.#inputs.set(alias, input);
    const { sandbox, inputsChanged } = await this.#prepare(cell, signal);
    const { lease, start, reused } = sandbox;
    const seen = inputsSeenBy(cell.code, cell.names, this.#inputs);
    const inputsBytes = seen.reduce((sum, [, input]) => sum + sizeOf(input), 0);
    request.onStart?.({ id: lease.id, driver: lease.driver, start, reused, inputAliasCount: seen.length, inputsBytes });
    sandbox.reused = true;
    const ready = performance.now();
    const mode = !isQuestion && (rollback === "fork" || !this.#committed.canReplay()) ? "fork" : "none";
    const ran = await this.#runIn(sandbox, { ...cell, rollback: mode, expect: request.expect, onOutput: request.onOutput, signal });
    if (ran.status === "ok" && !ran.aborted && !isQuestion) {
      this.#committed.add(cell, ran);
      sandbox.suspect = false;
      if (rollback === "replay" && !this.#committed.canReplay()) askForSpare(sandbox);
    }
    if (ran.status === "sandbox_lost" && sandbox.suspect && !isExpired(ran)) this.#poisoned = true;
    if (!ran.leaseUsable) {
      this.#discard(sandbox);
      this.#recover();
    }
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

  /** A sandbox with the state of the committed cells and every input that the cell can see. */
  async #prepare(cell: CellText, signal?: AbortSignal): Promise<{ sandbox: Held; inputsChanged: ChangedInput[] }> {
    const given = this.#shipped; // obtain() replaces it when it opens another sandbox
    await orAbort(this.#recovering ?? Promise.resolve(), signal);
    const sandbox = await this.#obtain(signal);
    const changed = this.#unshipped(sandbox, cell).filter(({ alias, version }) => given.has(alias) && given.get(alias) !== version);
    if (changed.some(({ alias }) => sandbox.shipped.has(alias))) this.#committed.forbidReplay();
    if (this.#closed) throw sessionClosed();
    await this.#shipInputs(sandbox, cell, signal);
    return { sandbox, inputsChanged: changed.map(({ alias, input }) => ({ alias, bytes: sizeOf(input) })) };
  }

  /** What the cell can see and the sandbox does not have, or not as it is now. Throws when a file is gone or it is all too large. */
  #unshipped({ shipped }: Held, { code, names }: CellText): { alias: string; input: SessionInput; version: string }[] {
    const wanted = inputsSeenBy(code, names, this.#inputs)
      .map(([alias, input]) => ({ alias, input, version: input.version?.() ?? "" }))
      .filter(({ alias, version }) => shipped.get(alias) !== version);
    const anew = new Set(wanted.map(({ alias }) => alias));
    let total = [...shipped.keys()].reduce((sum, alias) => (anew.has(alias) ? sum : sum + sizeOf(this.#inputs.get(alias)!)), 0);
    for (const { alias, input } of wanted) {
      refuseTooLarge(alias, input, total, this.#options.limits);
      total += sizeOf(input);
    }
    return wanted;
  }

  /** On abort, stops sending and discards the sandbox: half an input is of no use. */
  async #shipInputs(to: Held, cell: CellText, signal?: AbortSignal): Promise<void> {
    const wanted = this.#unshipped(to, cell);
    const giveUp = (): void => this.#discard(to);
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      for (const { alias, input, version } of wanted) {
        await sendInput(to.lease, alias, input);
        to.shipped.set(alias, version);
      }
    } catch (error) {
      this.#discard(to);
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** The sandbox at hand, or a new one in which the committed cells were replayed. */
  async #obtain(signal?: AbortSignal): Promise<Held> {
    if (this.#held !== null && Date.now() > this.#held.expiresAt) this.#discard(this.#held);
    this.#held ??= await this.#open(signal);
    return this.#held;
  }

  async #open(signal?: AbortSignal): Promise<Held> {
    const fresh = await this.#restore(signal);
    this.#shipped = fresh.shipped;
    return fresh;
  }

  async #restore(signal?: AbortSignal): Promise<Held> {
    const fresh = await this.#take(signal);
    const { count } = this.#committed;
    if (count === 0) return fresh;
    const because = this.#whyNoReplay();
    if (because !== null) {
      this.#lose(because);
      return fresh;
    }
    const failure = await this.#committed
      .replay(async (cell) => {
        await this.#shipInputs(fresh, cell, signal);
        const ran = await this.#runIn(fresh, { ...cell, rollback: "none", signal });
        if (ran.aborted) throw signal?.reason;
        return ran;
      })
      .catch(async (error: unknown) => {
        await fresh.lease.close(); // the cells still count: the next call runs them again
        throw error;
      });
    if (failure === null) {
      this.#replaced = { variables: "replayed", cells: count };
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
    const isSame = ([alias, version]: [string, string]): boolean => versionOf(this.#inputs.get(alias)!) === version;
    return [...this.#shipped].every(isSame) ? null : "the sandbox was lost, and an input is no longer what the earlier cells were given";
  }

  #lose(because: string): void {
    this.#replaced = { variables: "lost", cells: this.#committed.count, because };
    this.#committed.clear();
  }

  async #take(signal?: AbortSignal): Promise<Held> {
    const { take, limits } = this.#options;
    const taken = await take(signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal]));
    const expiresAt = Date.now() + limits.leaseTimeoutMs;
    const fresh: Held = { ...taken, shipped: new Map(), expiresAt, reused: false, busy: false, suspect: false };
    const expiry = setTimeout(() => {
      void this.#queue.run(async () => this.#discard(fresh)); // a cell that runs now is ended at the same time
    }, limits.leaseTimeoutMs).unref();
    void taken.lease.died.then(({ cause }) => {
      clearTimeout(expiry);
      if (this.#held !== fresh) return;
      this.#held = null;
      this.#poisoned ||= fresh.suspect && !fresh.busy && cause !== "closed";
    });
    return fresh;
  }

  #discard(gone: Held): void {
    if (this.#held === gone) this.#held = null;
    this.#closing = Promise.allSettled([this.#closing, gone.lease.close()]);
  }

  /** In the background, so that the next cell finds the state from before the failed one. What goes wrong shows when that cell asks again. */
  #recover(): void {
    if (this.#closed || this.#committed.count === 0) return;
    this.#recovering = this.#open()
      .then(
        (fresh) => {
          this.#held = fresh;
        },
        () => {},
      )
      .finally(() => {
        this.#recovering = null;
      });
  }

  #rest(): void {
    if (this.#closed) return;
    this.#idle = setTimeout(() => void this.release(), this.#options.idleMs ?? 5 * 60_000).unref();
  }
}

/** A file that is another than the one that the sandbox had. */
interface ChangedInput {
  readonly alias: string;
  readonly bytes: number;
}

function versionOf({ version }: SessionInput): string | null {
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

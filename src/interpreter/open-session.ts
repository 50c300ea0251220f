import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { UsageError } from "../errors/sluice-error.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { undoneFrame } from "../protocol/worker-frames.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import { orAbort } from "../waiting/or-abort.ts";
import { createCallQueue } from "./call-queue.ts";
import { createCommittedCells, type CellText } from "./committed-cells.ts";
import { runCell, type CellRun } from "./run-cell.ts";
import { createSessionInputs, type SessionInput } from "./session-inputs.ts";
import { toCellOutcome } from "./to-cell-outcome.ts";

export interface CellRequest {
  readonly code: string;
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
  readonly onStart?: (sandbox: CellOutcome["sandbox"] & { reused: boolean }) => void;
  /** When the caller began to wait, by `performance.now()`; without it, when `run` was called. */
  readonly askedAt?: number;
  readonly signal?: AbortSignal;
}

/** A sequence of atomic cells over one sandbox at a time. When a sandbox has to be replaced, the session says what became of the variables. */
export interface Session extends AsyncDisposable {
  /** Binds bytes to an alias. They go to a sandbox once, before the first cell that can use them. */
  bind(alias: string, input: SessionInput): void;
  /** Cells queue. Resolves with the outcome, whatever the code did; rejects when no sandbox can be had, or on abort. */
  run(request: CellRequest): Promise<CellOutcome>;
  /** Back to the state before the last cell that counted. Where that cannot be had, the next outcome says that the variables are lost. Rejects on abort, and then nothing is undone. */
  undo(signal?: AbortSignal): Promise<void>;
  /** Gives its sandbox up between two cells; whether there was one. The next cell gets another, and its outcome says what became of the variables. */
  release(): Promise<boolean>;
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly rollback: "fork" | "replay";
  readonly limits: SandboxLimits;
  readonly take: (signal?: AbortSignal) => Promise<TakenLease>;
  readonly images: ImageChecker;
  /** A sandbox that runs nothing for this long is given up. */
  readonly idleMs?: number;
}

interface Held extends TakenLease {
  readonly shipped: Set<string>;
  readonly expiresAt: number;
  /** It has run a cell of this session. */
  reused: boolean;
  /** A cell runs in it, whose outcome says what ended it. */
  busy: boolean;
  /** The committed cells were run again in it, and no cell has succeeded since: what ends it now may well be one of them. */
  suspect: boolean;
}

export function openSession({ rollback, limits, take, images, idleMs = 5 * 60_000 }: SessionOptions): Session {
  const inputs = createSessionInputs(limits);
  const committed = createCommittedCells();
  let held: Held | null = null;
  let recovering: Promise<void> | null = null;
  let replaced: Record<string, unknown> | null = null;
  let poisoned = false;
  const queue = createCallQueue();
  const ending = new AbortController();
  let idle: NodeJS.Timeout | undefined;
  let cells = 0;
  let closed = false;
  let closing: Promise<unknown> = Promise.resolve();

  function bind(alias: string, input: SessionInput): void {
    if (inputs.bind(alias, input)) committed.forbidReplay();
    held?.shipped.delete(alias);
  }

  function run(request: CellRequest): Promise<CellOutcome> {
    const asked = request.askedAt ?? performance.now();
    return queue.run(() => runNow(request, asked).finally(rest), request.signal);
  }

  async function runNow(request: CellRequest, asked: number): Promise<CellOutcome> {
    refuseClosed();
    const code = Buffer.from(request.code, "utf8");
    refuseLongCode(code.length, limits);
    clearTimeout(idle);
    const started = performance.now();
    const names = request.names ?? {};
    const { signal } = request;
    await orAbort(recovering ?? Promise.resolve(), signal);
    const current = await obtain(signal);
    refuseClosed();
    await ship(current, { code: request.code, names }, signal);
    request.onStart?.({ id: current.lease.id, driver: current.lease.driver, start: current.start, reused: current.reused });
    current.reused = true;
    const ready = performance.now();
    const isQuestion = request.isQuestion === true;
    const mode = !isQuestion && (rollback === "fork" || !committed.canReplay()) ? "fork" : "none";
    cells += 1;
    const { lease } = current;
    current.busy = true;
    const ran = await runCell({
      lease,
      cell: cells,
      code,
      rollback: mode,
      names,
      expect: request.expect ?? null,
      limits,
      leaseLeftMs: current.expiresAt - Date.now(),
      images,
      onOutput: request.onOutput,
      signal,
    }).finally(() => {
      current.busy = false;
    });
    if (ran.status === "ok" && !ran.aborted && !isQuestion) {
      committed.add({ code: request.code, names }, ran);
      current.suspect = false;
      if (rollback === "replay" && !committed.canReplay()) askForSpare(current);
    }
    if (ran.status === "sandbox_lost" && current.suspect && !isExpired(ran)) poisoned = true;
    if (!ran.leaseUsable) {
      discard(current);
      recover();
    }
    if (ran.aborted) throw signal?.reason;
    const timing = { queueMs: started - asked, startMs: ready - started, totalMs: performance.now() - asked };
    const outcome = toCellOutcome(ran, current, { timing, replaced });
    replaced = null;
    return outcome;
  }

  function refuseClosed(): void {
    if (closed) throw new UsageError({ code: "SESSION_CLOSED", message: "The session is closed." });
  }

  function undo(signal?: AbortSignal): Promise<void> {
    return queue.run(() => undoNow(signal), signal);
  }

  async function undoNow(signal?: AbortSignal): Promise<void> {
    await orAbort(recovering ?? Promise.resolve(), signal);
    if (!committed.drop() || held === null) return;
    if (await undoInside(held)) return;
    discard(held);
    recover();
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

  /** The sandbox at hand, or a new one in which the committed cells were replayed. */
  async function obtain(signal?: AbortSignal): Promise<Held> {
    if (held !== null && Date.now() > held.expiresAt) discard(held);
    held ??= await open(signal);
    return held;
  }

  async function open(signal?: AbortSignal): Promise<Held> {
    const fresh = await takeNew(signal);
    const { count } = committed;
    if (count === 0) return fresh;
    if (poisoned) {
      poisoned = false;
      lose("the sandbox was lost again right after the earlier cells were run again in it");
      return fresh;
    }
    if (!committed.canReplay()) {
      lose("the sandbox was lost, and the earlier cells cannot be run again exactly and quickly");
      return fresh;
    }
    if (!inputs.areAsShipped()) {
      lose("the sandbox was lost, and an input is no longer what the earlier cells were given");
      return fresh;
    }
    const failure = await committed
      .replay((cell) => runAgain(fresh, cell, signal))
      .catch(async (error: unknown) => {
        await fresh.lease.close(); // the cells still count: the next call runs them again
        throw error;
      });
    if (failure === null) {
      replaced = { variables: "replayed", cells: count };
      fresh.suspect = true;
      return fresh;
    }
    await fresh.lease.close();
    lose(failure);
    return await takeNew(signal);
  }

  function lose(because: string): void {
    replaced = { variables: "lost", cells: committed.count, because };
    committed.clear();
  }

  async function takeNew(signal?: AbortSignal): Promise<Held> {
    const taken = await take(signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]));
    const fresh: Held = {
      ...taken,
      shipped: new Set(),
      expiresAt: Date.now() + limits.leaseTimeoutMs,
      reused: false,
      busy: false,
      suspect: false,
    };
    const expiry = setTimeout(() => {
      void queue.run(async () => discard(fresh)); // a cell that runs now is ended at the same time
    }, limits.leaseTimeoutMs).unref();
    void taken.lease.died.then(({ cause }) => {
      clearTimeout(expiry);
      if (held !== fresh) return;
      held = null;
      poisoned ||= fresh.suspect && !fresh.busy && cause !== "closed";
    });
    return fresh;
  }

  async function runAgain(fresh: Held, cell: CellText, signal?: AbortSignal): Promise<CellRun> {
    await ship(fresh, cell, signal);
    cells += 1;
    const again = { cell: cells, code: Buffer.from(cell.code), rollback: "none", names: cell.names, expect: null } as const;
    const ran = await runCell({ ...again, lease: fresh.lease, limits, images, signal });
    if (ran.aborted) throw signal?.reason;
    return ran;
  }

  /** Who gives up meanwhile does not wait for 200 MB: half an input is of no use, and the sandbox goes with it. */
  async function ship(to: Held, { code, names }: CellText, signal?: AbortSignal): Promise<void> {
    const giveUp = (): void => discard(to);
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      await inputs.ship(to, code, names);
    } catch (error) {
      discard(to);
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  }

  function discard(gone: Held): void {
    if (held === gone) held = null;
    closing = Promise.allSettled([closing, gone.lease.close()]);
  }

  /** Behind the caller's back, so that the next cell finds the state from before the failed one. What goes wrong shows when that cell asks again. */
  function recover(): void {
    if (closed || committed.count === 0) return;
    recovering = open()
      .then(
        (fresh) => {
          held = fresh;
        },
        () => {},
      )
      .finally(() => {
        recovering = null;
      });
  }

  function rest(): void {
    if (closed) return;
    idle = setTimeout(() => void release(), idleMs).unref();
  }

  function release(): Promise<boolean> {
    return queue.run(async () => {
      if (held === null) return false;
      discard(held);
      await closing;
      return true;
    });
  }

  async function close(): Promise<void> {
    closed = true;
    ending.abort(new UsageError({ code: "SESSION_CLOSED", message: "The session is closed." }));
    await held?.lease.close(); // ends what runs
    await queue.idle();
    await recovering;
    if (held !== null) discard(held); // what was being opened meanwhile
    await closing;
    clearTimeout(idle);
  }

  return { bind, run, undo, release, close, [Symbol.asyncDispose]: close };
}

/** The sandbox's time was over: that says nothing about the cells that ran in it. */
function isExpired({ error }: CellRun): boolean {
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

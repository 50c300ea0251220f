import { createHash } from "node:crypto";
import type { ImageChecker } from "../artifacts/create-image-checker.ts";
import { SandboxLostError, UsageError } from "../errors/sluice-error.ts";
import type { CellOutcome } from "../protocol/outcome.ts";
import { inputOkFrame, undoneFrame } from "../protocol/worker-frames.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import type { TakenLease } from "../sandbox/pool.ts";
import { createCallQueue } from "./call-queue.ts";
import { canReplay } from "./can-replay.ts";
import { deathOf } from "./death-of.ts";
import { runCell, type CellRun } from "./run-cell.ts";

/** How the bytes of an input become a Python value, inside the sandbox and only when it is used. */
export type InputFormat = "json" | "jsonl" | "csv" | "tsv" | "parquet" | "xlsx" | "text" | "bytes";

export interface SessionInput {
  readonly format: InputFormat;
  readonly bytes: Uint8Array;
  /** How many bytes, where reading them is put off until they are shipped. */
  readonly size?: number;
}

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
  /** Back to the state before the last cell that counted. Where that cannot be had, the next outcome says that the variables are lost. */
  undo(): Promise<void>;
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
  /** The committed cells were run again in it, and no cell has succeeded since: what ends it now may well be one of them. */
  suspect: boolean;
}

interface Committed {
  readonly code: string;
  readonly names: Readonly<Record<string, string>>;
  readonly runMs: number;
  readonly exact: boolean;
  readonly resultHash: string;
}

/** Cells are replayed while that takes less than this in all; past it the worker forks before each cell instead. */
const REPLAY_BUDGET_MS = 500;
/** Parsed JSON needs about this many times its size. */
const JSON_GROWTH = 5;

export function openSession({ rollback, limits, take, images, idleMs = 5 * 60_000 }: SessionOptions): Session {
  const inputs = new Map<string, SessionInput>();
  let committed: Committed[] = [];
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
    refuseTooLarge(
      alias,
      input,
      limits,
      [...inputs].filter(([name]) => name !== alias).reduce((sum, [, other]) => sum + sizeOf(other), 0),
    );
    inputs.set(alias, input);
    held?.shipped.delete(alias);
  }

  function run(request: CellRequest): Promise<CellOutcome> {
    const asked = request.askedAt ?? performance.now();
    return queue.run(() => runNow(request, asked), request.signal);
  }

  async function runNow(request: CellRequest, asked: number): Promise<CellOutcome> {
    refuseClosed();
    const code = Buffer.from(request.code, "utf8");
    refuseLongCode(code.length, limits);
    clearTimeout(idle);
    const started = performance.now();
    const names = request.names ?? {};
    const { signal } = request;
    await recovering;
    const current = await obtain(signal);
    refuseClosed();
    await ship(current, request.code, names);
    request.onStart?.({ id: current.lease.id, driver: current.lease.driver, start: current.start, reused: current.reused });
    current.reused = true;
    const ready = performance.now();
    const isQuestion = request.isQuestion === true;
    const mode = !isQuestion && (rollback === "fork" || !replayable()) ? "fork" : "none";
    cells += 1;
    const { lease } = current;
    const ran = await runCell({
      lease,
      cell: cells,
      code,
      rollback: mode,
      names,
      expect: request.expect ?? null,
      limits,
      images,
      onOutput: request.onOutput,
      signal,
    });
    if (ran.status === "ok" && !ran.aborted && !isQuestion) {
      commit(request.code, names, ran);
      current.suspect = false;
      if (rollback === "replay" && !replayable()) askForSpare(current);
    }
    if (ran.status === "sandbox_lost" && current.suspect) poisoned = true;
    if (!ran.leaseUsable) {
      discard(current);
      recover();
    }
    if (ran.aborted) throw signal?.reason;
    const outcome = toOutcome(ran, current, { queueMs: started - asked, startMs: ready - started, totalMs: performance.now() - asked });
    rest();
    return outcome;
  }

  function refuseClosed(): void {
    if (closed) throw new UsageError({ code: "SESSION_CLOSED", message: "The session is closed." });
  }

  function undo(): Promise<void> {
    return queue.run(undoNow);
  }

  async function undoNow(): Promise<void> {
    await recovering;
    if (committed.pop() === undefined || held === null) return;
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

  function replayable(): boolean {
    return committed.every((cell) => cell.exact) && committed.reduce((sum, cell) => sum + cell.runMs, 0) < REPLAY_BUDGET_MS;
  }

  function commit(code: string, names: Readonly<Record<string, string>>, ran: CellRun): void {
    committed.push({ code, names, runMs: ran.runMs, exact: canReplay(code), resultHash: hash(ran.resultJson) });
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
    if (committed.length === 0) return fresh;
    const count = committed.length;
    if (poisoned) {
      poisoned = false;
      committed = [];
      replaced = {
        variables: "lost",
        cells: count,
        because: "the sandbox was lost again right after the earlier cells were run again in it",
      };
      return fresh;
    }
    if (!replayable()) {
      committed = [];
      replaced = {
        variables: "lost",
        cells: count,
        because: "the sandbox was lost, and the earlier cells cannot be run again exactly and quickly",
      };
      return fresh;
    }
    const failure = await replay(fresh, signal);
    if (failure === null) {
      replaced = { variables: "replayed", cells: count };
      fresh.suspect = true;
      return fresh;
    }
    await fresh.lease.close();
    committed = [];
    replaced = { variables: "lost", cells: count, because: failure };
    return await takeNew(signal);
  }

  async function takeNew(signal?: AbortSignal): Promise<Held> {
    const taken = await take(signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]));
    const fresh: Held = { ...taken, shipped: new Set(), expiresAt: Date.now() + limits.leaseTimeoutMs, reused: false, suspect: false };
    const expiry = setTimeout(() => {
      void queue.run(async () => discard(fresh)); // a running cell may end, within its own limit
    }, limits.leaseTimeoutMs).unref();
    void taken.lease.died.then(({ cause }) => {
      clearTimeout(expiry);
      if (held !== fresh) return;
      held = null;
      poisoned ||= fresh.suspect && cause !== "closed";
    });
    return fresh;
  }

  /** Null when every committed cell came out the same again, else why not. */
  async function replay(fresh: Held, signal?: AbortSignal): Promise<string | null> {
    for (const [index, { code, names, resultHash }] of committed.entries()) {
      await ship(fresh, code, names);
      cells += 1;
      const ran = await runCell({
        lease: fresh.lease,
        cell: cells,
        code: Buffer.from(code),
        rollback: "none",
        names,
        expect: null,
        limits,
        images,
        signal,
      });
      if (ran.aborted) {
        await fresh.lease.close();
        throw signal?.reason; // the cells still count: the next call runs them again
      }
      if (ran.status !== "ok") return `cell ${index + 1} of ${committed.length} ended as ${ran.status} when it was run again`;
      if (hash(ran.resultJson) !== resultHash) return `cell ${index + 1} of ${committed.length} gave another result when it was run again`;
    }
    return null;
  }

  async function ship(current: Held, code: string, names: Readonly<Record<string, string>>): Promise<void> {
    const { lease, shipped } = current;
    for (const [alias, input] of inputs) {
      if (shipped.has(alias) || !mayUse(code, alias, names)) continue;
      if (!(await isTaken(lease, alias, input))) {
        const death = await deathOf(lease);
        discard(current);
        throw death === null || death.cause === "out_of_memory" ? notTaken(alias, input) : lostWhileShipping(alias);
      }
      shipped.add(alias);
    }
  }

  function discard(gone: Held): void {
    if (held === gone) held = null;
    closing = Promise.allSettled([closing, gone.lease.close()]);
  }

  /** Behind the caller's back, so that the next cell finds the state from before the failed one. What goes wrong shows when that cell asks again. */
  function recover(): void {
    if (closed || committed.length === 0) return;
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
    idle = setTimeout(() => {
      void queue.run(async () => void (held && discard(held)));
    }, idleMs).unref();
  }

  function toOutcome(ran: CellRun, { lease, start }: Held, timing: { queueMs: number; startMs: number; totalMs: number }): CellOutcome {
    const { status, resultJson, artifacts, error, runMs, usage } = ran;
    const truncated = {
      ...(ran.stdout.omittedBytes > 0 ? { stdout: { omittedBytes: ran.stdout.omittedBytes } } : {}),
      ...(ran.stderr.omittedBytes > 0 ? { stderr: { omittedBytes: ran.stderr.omittedBytes } } : {}),
    };
    const diagnostics = replaced === null ? ran.diagnostics : { ...ran.diagnostics, sandboxReplaced: replaced };
    replaced = null;
    return {
      schemaVersion: 1,
      status,
      resultJson,
      stdout: ran.stdout.text,
      stderr: ran.stderr.text,
      ...(Object.keys(truncated).length > 0 ? { truncated } : {}),
      artifacts,
      diagnostics,
      ...(error ? { error } : {}),
      timing: { queueMs: round(timing.queueMs), startMs: round(timing.startMs), runMs: round(runMs), totalMs: round(timing.totalMs) },
      usage: { peakMemoryBytes: usage.peakMemoryBytes, cpuMs: round(usage.cpuMs) },
      ...(ran.exitCode === undefined ? {} : { exitCode: ran.exitCode }),
      sandbox: { id: lease.id, driver: lease.driver, start },
    };
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

  return { bind, run, undo, close, [Symbol.asyncDispose]: close };
}

/** An alias is shipped when the code can see it: by its name, a local name for it, or anything that goes through `inputs`. */
function mayUse(code: string, alias: string, names: Readonly<Record<string, string>>): boolean {
  return code.includes(alias) || /\binputs\b/.test(code) || Object.values(names).includes(alias);
}

function sizeOf(input: SessionInput): number {
  return input.size ?? input.bytes.length;
}

function refuseTooLarge(alias: string, input: SessionInput, limits: SandboxLimits, others: number): void {
  const { format } = input;
  const size = sizeOf(input);
  const total = others + size;
  if (total > limits.inputBytes) {
    throw new UsageError({
      code: "INPUTS_TOO_LARGE",
      message: `Inputs have ${total} bytes with ${alias}, ${limits.inputBytes} are allowed.`,
      hint: "Bind less, or raise the limit inputBytes.",
      details: { alias, allowed: limits.inputBytes, seen: total },
    });
  }
  if (format === "json" && size * JSON_GROWTH > limits.memoryBytes) {
    throw new UsageError({
      code: "INPUT_TOO_LARGE",
      message: `${alias} has ${size} bytes of JSON, which needs about ${size * JSON_GROWTH} bytes of memory in Python; the limit is ${limits.memoryBytes}.`,
      hint: "Raise the memory limit, or give the data as Parquet or CSV.",
      details: { alias, allowed: limits.memoryBytes, estimate: size * JSON_GROWTH },
    });
  }
}

async function isTaken({ channel }: Lease, alias: string, { format, bytes }: SessionInput): Promise<boolean> {
  try {
    await channel.send({ type: "input", alias, format }, bytes);
    return inputOkFrame.safeParse((await channel.receive())?.header).data?.alias === alias;
  } catch (error) {
    if (error instanceof SandboxLostError) return false;
    throw error;
  }
}

function notTaken(alias: string, { bytes }: SessionInput): UsageError {
  return new UsageError({
    code: "INPUT_NOT_TAKEN",
    message: `The sandbox did not take the input ${alias} (${bytes.length} bytes).`,
    hint: "It may not fit the memory limit; raise it or bind less.",
  });
}

function lostWhileShipping(alias: string): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_LOST",
    message: `The sandbox is gone: it ended while the input ${alias} was given to it. Nothing of this cell was run.`,
    hint: "Call again: a new sandbox is opened, and the answer says what became of the variables.",
  });
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

function hash(text: string | null): string {
  return createHash("sha256")
    .update(text ?? "")
    .digest("hex");
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

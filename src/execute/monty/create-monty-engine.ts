import { SluiceError } from "../../errors/sluice-error.ts";
import { defaultExecuteLimits, type Engine, type EngineOutcome, type Script } from "../contract.ts";
import { checkIsolation } from "./check-isolation.ts";
import { createChildCommand, type ChildCommand, type MontyIsolation } from "./child-command.ts";
import { openMontyChild, type MontyChild } from "./open-monty-child.ts";

export interface MontyEngineOptions {
  /**
   * `namespaces`: each child has its own, through bubblewrap, with nothing of the host in sight. `process-only`: a child without environment and
   * with a memory limit, which a script that broke out of the interpreter could use as any program of this user can.
   */
  readonly isolation?: MontyIsolation;
  /** Children that are kept, and so scripts that run at once. */
  readonly poolSize?: number;
  /** For what memory limit children are made ready; a script with another one gets a child of its own. */
  readonly memoryBytes?: number;
  readonly bwrapPath?: string;
}

export interface MontyEngine extends Engine {
  readonly name: "monty";
  /** Starts the children, so that the first script need not wait. Rejects when there can be none. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

/** A child is not used for longer: what a script may have broken in it does not last. */
const SCRIPTS_PER_CHILD = 200;

export function createMontyEngine({
  isolation = "namespaces",
  poolSize = 2,
  memoryBytes = defaultExecuteLimits.memoryBytes,
  bwrapPath = "bwrap",
}: MontyEngineOptions = {}): MontyEngine {
  const idle: Promise<MontyChild>[] = [];
  const waiting: (() => void)[] = [];
  /** What has to be gone before the engine is: children, from the moment they are started until they are dead. */
  const opening = new Set<Promise<MontyChild>>();
  const children = new Set<MontyChild>();
  let command: Promise<ChildCommand> | null = null;
  let running = 0;
  let closed = false;

  async function run(script: Script): Promise<EngineOutcome> {
    script.signal?.throwIfAborted();
    await slot(script.signal);
    try {
      const child = await take(script.limits.memoryBytes);
      try {
        const outcome = await child.run(script);
        if (closed && outcome.end.kind === "crashed") throw engineClosed();
        return outcome;
      } finally {
        giveBack(child);
      }
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  }

  /** Scripts wait their turn in order; one that is aborted leaves the queue. */
  async function slot(signal: AbortSignal | undefined): Promise<void> {
    if (closed) throw engineClosed();
    if (running >= poolSize) {
      const turn = Promise.withResolvers<void>();
      const leave = (): void => turn.reject(signal?.reason);
      waiting.push(turn.resolve);
      signal?.addEventListener("abort", leave, { once: true });
      try {
        await turn.promise;
      } catch (error) {
        const at = waiting.indexOf(turn.resolve);
        if (at >= 0) waiting.splice(at, 1);
        throw error;
      } finally {
        signal?.removeEventListener("abort", leave);
      }
      if (closed) throw engineClosed();
    }
    running += 1;
  }

  async function take(wantedBytes: number): Promise<MontyChild> {
    while (idle.length > 0) {
      const child = await idle.shift()!.catch(() => null);
      if (child === null) continue;
      if (child.isAlive() && child.memoryBytes === wantedBytes) return child;
      await discard(child);
    }
    return open(wantedBytes);
  }

  function open(bytes: number): Promise<MontyChild> {
    if (closed) return Promise.reject(engineClosed());
    command ??= prepare();
    const child = command.then((ready) => openMontyChild(ready, bytes));
    opening.add(child);
    child.then(
      (opened) => {
        children.add(opened);
        opening.delete(child);
      },
      () => opening.delete(child),
    );
    return child;
  }

  async function prepare(): Promise<ChildCommand> {
    try {
      if (isolation === "namespaces") await checkIsolation(bwrapPath);
      return await createChildCommand({ isolation, bwrapPath });
    } catch (error) {
      command = null; // what is missing can be installed meanwhile
      throw error;
    }
  }

  function giveBack(child: MontyChild): void {
    const used = child.isAlive() && child.scripts() < SCRIPTS_PER_CHILD && !closed;
    if (used) {
      idle.push(Promise.resolve(child));
      return;
    }
    void discard(child);
    if (!closed) refill();
  }

  function refill(): void {
    while (idle.length + running - 1 < poolSize) {
      const opening = open(memoryBytes);
      opening.catch(() => {}); // the next script opens one itself and is told why it cannot
      idle.push(opening);
    }
  }

  async function discard(child: MontyChild): Promise<void> {
    await child.kill();
    children.delete(child);
  }

  async function warm(): Promise<void> {
    if (closed) throw engineClosed();
    while (idle.length + running < poolSize) idle.push(open(memoryBytes));
    await Promise.all(idle);
  }

  async function close(): Promise<void> {
    closed = true;
    for (const wake of waiting.splice(0)) wake();
    await Promise.allSettled(opening);
    await Promise.all([...children].map(discard));
    idle.length = 0;
  }

  return { name: "monty", run, warm, close, [Symbol.asyncDispose]: close };
}

function engineClosed(): SluiceError {
  return new SluiceError({ code: "ENGINE_CLOSED", message: "The engine is closed.", hint: "Create a new one." });
}

import { createLimiter } from "../../concurrency/create-limiter.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { defaultExecuteLimits, defaultExecuteSettings, type Engine, type EngineOutcome, type Script } from "../engine.ts";
import { checkIsolation, createChildCommand, type ChildCommand, type MontyIsolation } from "./child-command.ts";
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
  isolation = defaultExecuteSettings.isolation,
  poolSize = 2,
  memoryBytes = defaultExecuteLimits.memoryBytes,
  bwrapPath = "bwrap",
}: MontyEngineOptions = {}): MontyEngine {
  const idle: Promise<MontyChild>[] = [];
  const scripts = createLimiter({ places: poolSize });
  const ending = new AbortController();
  /** What has to be gone before the engine is: children, from the moment they are started until they are dead. */
  const children = new Set<Promise<MontyChild>>();
  let command: Promise<ChildCommand> | null = null;
  const isClosed = (): boolean => ending.signal.aborted;

  async function run(script: Script): Promise<EngineOutcome> {
    const signal = script.signal === undefined ? ending.signal : AbortSignal.any([script.signal, ending.signal]);
    return await scripts.run(async () => {
      const child = await take(script.limits.memoryBytes);
      try {
        const outcome = await child.run(script);
        if (isClosed() && outcome.end.kind === "crashed") throw engineClosed();
        return outcome;
      } finally {
        giveBack(child);
      }
    }, signal);
  }

  async function take(wantedBytes: number): Promise<MontyChild> {
    while (idle.length > 0) {
      const child = await idle.shift()!.catch(() => null);
      if (child === null) continue;
      if (child.isAlive() && child.memoryBytes === wantedBytes) return child;
      await child.kill();
    }
    return open(wantedBytes);
  }

  function open(bytes: number): Promise<MontyChild> {
    if (isClosed()) return Promise.reject(engineClosed());
    command ??= prepare();
    const child = command.then((ready) => openMontyChild(ready, bytes));
    children.add(child);
    void child
      .then(({ gone }) => gone)
      .catch(() => {})
      .then(() => children.delete(child));
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
    if (child.isAlive() && child.scripts() < SCRIPTS_PER_CHILD && !isClosed()) return void idle.push(Promise.resolve(child));
    void child.kill();
    while (!isClosed() && idle.length + scripts.taken - 1 < poolSize) {
      const opening = open(memoryBytes);
      opening.catch(() => {}); // the next script opens one itself and is told why it cannot
      idle.push(opening);
    }
  }

  async function warm(): Promise<void> {
    if (isClosed()) throw engineClosed();
    while (idle.length + scripts.taken < poolSize) idle.push(open(memoryBytes));
    await Promise.all(idle);
  }

  async function close(): Promise<void> {
    ending.abort(engineClosed());
    await Promise.all([...children].map(async (child) => (await child.catch(() => null))?.kill()));
    idle.length = 0;
  }

  return { name: "monty", run, warm, close, [Symbol.asyncDispose]: close };
}

function engineClosed(): SluiceError {
  return new SluiceError({ code: "ENGINE_CLOSED", message: "The engine is closed." });
}

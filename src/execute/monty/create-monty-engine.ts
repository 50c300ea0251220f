import { createLimiter } from "../../concurrency/create-limiter.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import { defaultExecuteLimits, defaultExecuteSettings, type Engine, type EngineOutcome, type Script } from "../engine.ts";
import { checkIsolation, createChildCommand, type ChildCommand, type ChildCommandOptions, type MontyIsolation } from "./child-command.ts";
import { openMontyChild, type MontyChild } from "./open-monty-child.ts";

export interface MontyEngineOptions {
  /**
   * `namespaces` isolates each child with bubblewrap, so that it sees nothing of the host. `process-only` only removes the environment and limits the
   * memory: a script that breaks out of the interpreter has the rights of this user.
   */
  readonly isolation?: MontyIsolation;
  /** Number of warm children, and of scripts that run at once. */
  readonly poolSize?: number;
  /** The memory limit of warm children. A script with another limit gets a new child. */
  readonly memoryBytes?: number;
  readonly bwrapPath?: string;
}

export interface MontyEngine extends Engine {
  readonly name: "monty";
  /** Starts the children, so that the first script does not wait. Rejects if they cannot be started. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

/** A child is replaced after this many scripts, which limits the effect of a script that damaged it. */
const SCRIPTS_PER_CHILD = 200;

/** The engine that runs scripts in Monty, in a pool of warm child processes. Children are started when they are first needed. */
export function createMontyEngine({
  isolation = defaultExecuteSettings.isolation,
  poolSize = 2,
  memoryBytes = defaultExecuteLimits.memoryBytes,
  bwrapPath = "bwrap",
}: MontyEngineOptions = {}): MontyEngine {
  const closing = new AbortController();
  const slots = createLimiter({ places: poolSize });
  const starter = createChildStarter({ isolation, bwrapPath, signal: closing.signal });
  const idle: Promise<MontyChild>[] = [];
  const isClosed = (): boolean => closing.signal.aborted;

  async function run(script: Script): Promise<EngineOutcome> {
    const signal = script.signal === undefined ? closing.signal : AbortSignal.any([script.signal, closing.signal]);
    return await slots.run(async () => {
      const child = await takeChild(script.limits.memoryBytes);
      try {
        const outcome = await child.run(script);
        if (isClosed() && outcome.end.kind === "crashed") throw engineClosed();
        return outcome;
      } finally {
        returnChild(child);
      }
    }, signal);
  }

  async function takeChild(neededBytes: number): Promise<MontyChild> {
    while (idle.length > 0) {
      const child = await idle.shift()!.catch(() => null);
      if (child === null) continue;
      if (child.isAlive() && child.memoryBytes === neededBytes) return child;
      await child.kill();
    }
    return await starter.start(neededBytes);
  }

  function returnChild(child: MontyChild): void {
    if (child.isAlive() && child.scriptCount < SCRIPTS_PER_CHILD && !isClosed()) return void idle.push(Promise.resolve(child));
    void child.kill();
    while (!isClosed() && idle.length + slots.taken - 1 < poolSize) {
      const starting = starter.start(memoryBytes);
      starting.catch(() => {}); // the next script starts a child itself and gets the error
      idle.push(starting);
    }
  }

  async function warm(): Promise<void> {
    if (isClosed()) throw engineClosed();
    while (idle.length + slots.taken < poolSize) idle.push(starter.start(memoryBytes));
    await Promise.all(idle);
  }

  async function close(): Promise<void> {
    closing.abort(engineClosed());
    await starter.killAll();
    idle.length = 0;
  }

  return { name: "monty", run, warm, close, [Symbol.asyncDispose]: close };
}

function engineClosed(): SluiceError {
  return new SluiceError({ code: "ENGINE_CLOSED", message: "The engine is closed." });
}

/** Starts children and remembers them until they have exited, so that none outlives the engine. Starts none after `signal` aborts. */
function createChildStarter({ isolation, bwrapPath, signal }: ChildCommandOptions & { readonly signal: AbortSignal }) {
  const children = new Set<Promise<MontyChild>>();
  let command: Promise<ChildCommand> | null = null;

  async function prepareCommand(): Promise<ChildCommand> {
    try {
      if (isolation === "namespaces") await checkIsolation(bwrapPath);
      return await createChildCommand({ isolation, bwrapPath });
    } catch (error) {
      command = null; // try again for the next child: what is missing may be installed by then
      throw error;
    }
  }

  return {
    start(memoryBytes: number): Promise<MontyChild> {
      if (signal.aborted) return Promise.reject(signal.reason as SluiceError);
      command ??= prepareCommand();
      const child = command.then((ready) => openMontyChild(ready, memoryBytes));
      children.add(child);
      void child
        .then(({ exited }) => exited)
        .catch(() => {})
        .then(() => children.delete(child));
      return child;
    },
    async killAll(): Promise<void> {
      await Promise.all([...children].map(async (child) => (await child.catch(() => null))?.kill()));
    },
  };
}

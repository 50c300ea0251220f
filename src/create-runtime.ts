import { createImageChecker } from "./artifacts/create-image-checker.ts";
import { NoSandboxError } from "./errors/sluice-error.ts";
import { createCpythonEngine } from "./execute/cpython/create-cpython-engine.ts";
import {
  createCodeMode,
  createCodeModeTools,
  type CodeModeContext,
  type CodeModeOptions,
  type CodeModeTool,
  type CodeModeToolsOptions,
} from "./execute/create-code-mode.ts";
import { createMontyEngine, type MontyEngineOptions } from "./execute/monty/create-monty-engine.ts";
import { chooseDriver, examine, type DriverReport } from "./cells/choose-driver.ts";
import { createPythonParser, type PythonParser } from "./interpreter/call-contract/validate-code-interpreter-contract.ts";
import { readHelperDocs } from "./prompts/helper-docs.ts";
import { librarianPrompt } from "./prompts/librarian-prompt.ts";
import { createInterpreterTurn, type InterpreterTurn, type TurnOptions } from "./interpreter/turn.ts";
import { openCellSession, type CellSession, type CellSessionOptions } from "./cells/open-cell-session.ts";
import type { SandboxDriver, SandboxLimits } from "./sandbox/contract.ts";
import { createBubblewrapDriver } from "./sandbox/drivers/bubblewrap/create-bubblewrap-driver.ts";
import { createGvisorDriver } from "./sandbox/drivers/gvisor/create-gvisor-driver.ts";
import { createGate, createSandboxPool, type Gate, type SandboxPool } from "./sandbox/pool.ts";
import { defaultLimits, defaultSandboxSettings as usual, defaultMaxSandboxes, type SandboxSettings } from "./sandbox/limits.ts";
import { openRunDirectory, type RunDirectory } from "./sandbox/run-directory.ts";
import { orAbort } from "./concurrency/or-abort.ts";
import { findSnapshot, type SnapshotInfo } from "./sandbox/snapshot/find-snapshot.ts";
import type { Tool } from "./tools/tool.ts";

export interface RuntimeOptions extends Partial<SandboxSettings> {
  readonly cacheDirectory: string;
  /** Where a runsc of the machine's own is looked for, as in PATH. Default: the system's directories. */
  readonly searchPath?: string;
  readonly limits?: SandboxLimits;
  /** How scripts of `execute` are shut in, and how many run at once. */
  readonly monty?: MontyEngineOptions;
}

/** Everything a caller needs to run cells, and the only place where its parts meet. Nothing is started before it is asked for. */
export interface Runtime extends AsyncDisposable {
  readonly limits: SandboxLimits;
  readonly gate: Gate;
  /** The snapshot for this version of the worker. Rejects with what to do when it is missing. */
  snapshot(): Promise<SnapshotInfo>;
  /** The driver in use, chosen on the first call. */
  driver(signal?: AbortSignal): Promise<SandboxDriver>;
  drivers(): Promise<readonly SandboxDriver[]>;
  /** Every driver, tried anew. */
  examineDrivers(signal?: AbortSignal): Promise<DriverReport[]>;
  pool(signal?: AbortSignal): Promise<SandboxPool>;
  openCellSession(options?: OpenCellSessionOptions): Promise<CellSession>;
  /** A turn whose cells run here. Its sandbox is opened by the first valid call; end it with `disposeTurnSandbox`. */
  createTurn(options: Omit<TurnOptions, "source">): InterpreterTurn;
  /** `execute` and its tools over a catalog, for one request of one conversation. Scripts run here; the catalog and its sources stay the caller's. */
  createCodeMode(options: Omit<CodeModeOptions, "engines">): readonly CodeModeTool[];
  /** The same for many conversations: evidence and session come with each call. */
  createCodeModeTools(options: Omit<CodeModeToolsOptions, "engines">): readonly Tool<CodeModeContext>[];
  /** What a model is told: libraries of the snapshot, helpers, rules. */
  librarianPrompt(): Promise<string>;
  close(): Promise<void>;
}

export interface OpenCellSessionOptions {
  readonly limits?: SandboxLimits;
  readonly queue?: CellSessionOptions["queue"];
  readonly signal?: AbortSignal | undefined;
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { cacheDirectory, limits = defaultLimits, maxSandboxes = defaultMaxSandboxes(limits) } = options;
  const { driver: wanted = usual.driver, poolSize = usual.poolSize, queueDeadlineMs = usual.queueDeadlineMs } = options;
  const gate = createGate({ places: maxSandboxes, deadlineMs: queueDeadlineMs });
  const sessions = new Set<CellSession>();
  let parser: PythonParser | null = null;
  let engines: CodeModeOptions["engines"] | null = null;
  const images = createImageChecker();
  const snapshot = once(async () => (await findSnapshot({ cacheDirectory })) ?? snapshotMissing());
  const runDirectory = once(() => openRunDirectory());
  const drivers = once(async () => createDrivers(options, await runDirectory()));
  const driver = once(async () => chooseDriver({ wanted, drivers: await drivers(), snapshot: await snapshot(), cacheDirectory, gate }));
  const pool = once(async () => createSandboxPool({ driver: await driver(), snapshot: await snapshot(), limits, size: poolSize, gate }));

  async function examineDrivers(signal?: AbortSignal): Promise<DriverReport[]> {
    const reports: DriverReport[] = [];
    for (const one of await drivers())
      reports.push(await examine({ driver: one, snapshot: await snapshot(), cacheDirectory, gate, fresh: true, signal }));
    return reports;
  }

  async function open({ limits: own = limits, queue, signal }: OpenCellSessionOptions = {}): Promise<CellSession> {
    const source = await orAbort(pool(), signal); // what all share is not ended because one gives up
    images.warm();
    const session = openCellSession({
      images,
      rollback: source.driver.rollback,
      limits: own,
      queue,
      take: (abort) => source.take({ limits: own, signal: abort }),
    });
    const close = async (): Promise<void> => {
      sessions.delete(tracked);
      await session.close();
    };
    const tracked: CellSession = { ...session, close, [Symbol.asyncDispose]: close };
    sessions.add(tracked);
    return tracked;
  }

  const docs = once(async () => readHelperDocs());

  function createTurn(turn: Omit<TurnOptions, "source">): InterpreterTurn {
    parser ??= createPythonParser();
    const source = { openCellSession: open, limits, helpers: async () => (await docs()).map(({ name }) => name), parser };
    return createInterpreterTurn({ ...turn, source });
  }

  function enginesForScripts(): CodeModeOptions["engines"] {
    engines ??= {
      monty: createMontyEngine(options.monty),
      cpython: createCpythonEngine({ take: async (lease) => (await orAbort(pool(), lease.signal)).take(lease) }),
    };
    return engines;
  }

  async function close(): Promise<void> {
    await Promise.all([...sessions].map((session) => session.close()));
    for (const part of [engines?.monty, engines?.cpython, images, parser]) await part?.[Symbol.asyncDispose]();
    await (await pool.started())?.[Symbol.asyncDispose]();
    for (const one of (await drivers.started()) ?? []) await one[Symbol.asyncDispose]();
    await (await runDirectory.started())?.[Symbol.asyncDispose]();
  }

  return {
    limits,
    gate,
    snapshot,
    driver: (signal) => orAbort(driver(), signal),
    drivers,
    examineDrivers,
    pool: (signal) => orAbort(pool(), signal),
    openCellSession: open,
    createTurn,
    createCodeMode: (wanted) => createCodeMode({ ...wanted, engines: enginesForScripts() }),
    createCodeModeTools: (wanted) => createCodeModeTools({ ...wanted, engines: enginesForScripts() }),
    librarianPrompt: async () => librarianPrompt({ packages: (await snapshot()).packages, helpers: await docs() }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Strongest first; each says itself whether it can be used by this user. */
function createDrivers({ cacheDirectory, searchPath }: RuntimeOptions, runDirectory: RunDirectory): SandboxDriver[] {
  const shared = { cacheDirectory, runDirectory, ...(searchPath === undefined ? {} : { searchPath }) };
  return [createGvisorDriver(shared), createGvisorDriver({ ...shared, rootless: true }), createBubblewrapDriver({ runDirectory })];
}

function snapshotMissing(): never {
  throw new NoSandboxError({
    code: "SNAPSHOT_MISSING",
    message: "There is no snapshot for this version of Sluice in the cache.",
    hint: "Run `sluice prepare` (`npx sluice prepare` where it is a dependency, `npm run setup` in a clone).",
  });
}

interface Once<T> {
  (): Promise<T>;
  /** What was made, if it was asked for and came about. */
  started(): Promise<T | null>;
}

/** Made on the first call and kept; a failure is forgotten, so that the next call tries again. */
function once<T>(make: () => Promise<T>): Once<T> {
  let made: Promise<T> | null = null;
  const get = (): Promise<T> => {
    if (made === null) {
      const attempt = make();
      made = attempt;
      attempt.catch(() => {
        if (made === attempt) made = null;
      });
    }
    return made;
  };
  return Object.assign(get, { started: async () => (made === null ? null : await made.catch(() => null)) });
}

import { createArtifactChecker } from "./artifacts/create-artifact-checker.ts";
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
import { chooseDriver, examineDriver, type DriverReport } from "./cells/choose-driver.ts";
import { createPythonParser } from "./interpreter/call-contract/python-parser.ts";
import { librarianPrompt, readHelperDocs } from "./prompts/librarian-prompt.ts";
import { createInterpreterTurn, type InterpreterTurn, type InterpreterTurnOptions } from "./interpreter/interpreter-turn.ts";
import { openCellSession, type CellSession, type CellSessionOptions } from "./cells/open-cell-session.ts";
import type { SandboxDriver, SandboxLimits } from "./sandbox/contract.ts";
import { createBubblewrapDriver } from "./sandbox/drivers/bubblewrap/create-bubblewrap-driver.ts";
import { createGvisorDriver } from "./sandbox/drivers/gvisor/create-gvisor-driver.ts";
import { createGate, SandboxPool, type Gate } from "./sandbox/pool.ts";
import { defaultLimits, defaultSandboxSettings, defaultMaxSandboxes, type SandboxSettings } from "./sandbox/limits.ts";
import { openRunDirectory, type RunDirectory } from "./sandbox/run-directory.ts";
import { orAbort } from "./concurrency/or-abort.ts";
import { requireSnapshot, type SnapshotInfo } from "./sandbox/snapshot/find-snapshot.ts";
import type { Tool } from "./tools/tool.ts";

export interface RuntimeOptions extends Partial<SandboxSettings> {
  readonly cacheDirectory: string;
  /** Directories to search for an installed runsc, in the format of PATH. Default: the system's directories. */
  readonly searchPath?: string;
  readonly limits?: SandboxLimits;
  /** How `execute` isolates scripts in Monty, and how many run at once. */
  readonly monty?: MontyEngineOptions;
}

/** Everything needed to run cells and scripts. Each part starts on first use. */
export interface Runtime extends AsyncDisposable {
  readonly limits: SandboxLimits;
  readonly gate: Gate;
  /** Returns the snapshot for this version of the worker. Rejects with SNAPSHOT_MISSING. */
  snapshot(): Promise<SnapshotInfo>;
  /** Returns the driver in use, which the first call chooses. */
  driver(signal?: AbortSignal): Promise<SandboxDriver>;
  drivers(): Promise<readonly SandboxDriver[]>;
  /** Tests every driver again, ignoring cached results. */
  examineDrivers(signal?: AbortSignal): Promise<DriverReport[]>;
  pool(signal?: AbortSignal): Promise<SandboxPool>;
  openCellSession(options?: OpenCellSessionOptions): Promise<CellSession>;
  /** Creates a turn whose cells run here. Its first valid call opens its sandbox; end it with `disposeTurnSandbox`. */
  createTurn(options: Omit<InterpreterTurnOptions, "source">): InterpreterTurn;
  /** Creates `execute` and its tools over a catalog, for one request of one conversation. The caller owns the catalog and closes its sources. */
  createCodeMode(options: Omit<CodeModeOptions, "engines">): readonly CodeModeTool[];
  /** The same for many conversations: evidence and identity context come with each call. */
  createCodeModeTools(options: Omit<CodeModeToolsOptions, "engines">): readonly Tool<CodeModeContext>[];
  /** Returns the instructions for a model that uses the interpreter: libraries of the snapshot, helpers and rules. */
  librarianPrompt(): Promise<string>;
  close(): Promise<void>;
}

interface OpenCellSessionOptions {
  /** Default: the limits of the runtime. */
  readonly limits?: SandboxLimits;
  readonly queue?: CellSessionOptions["queue"];
  readonly signal?: AbortSignal | undefined;
}

/** Wires the parts together. Synchronous and cheap: nothing is opened before it is needed. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { limits = defaultLimits } = options;
  const sandboxes = createSandboxParts(options, limits);
  const { snapshot, drivers, driver, pool } = sandboxes;
  const cellSessions = createCellSessions(pool, limits);
  const parser = createPythonParser();
  const helperDocs = once(async () => readHelperDocs());
  const helpers = async (): Promise<string[]> => (await helperDocs()).map(({ name }) => name);
  const source = { openCellSession: cellSessions.open, limits, helpers, parser };
  let engines: CodeModeOptions["engines"] | null = null;

  function getEngines(): CodeModeOptions["engines"] {
    engines ??= {
      monty: createMontyEngine(options.monty),
      cpython: createCpythonEngine({ take: async (lease) => (await orAbort(pool(), lease.signal)).take(lease) }),
    };
    return engines;
  }

  async function close(): Promise<void> {
    for (const part of [cellSessions, engines?.monty, engines?.cpython, parser, sandboxes]) await part?.[Symbol.asyncDispose]();
  }

  return {
    limits,
    gate: sandboxes.gate,
    snapshot,
    driver: (signal) => orAbort(driver(), signal),
    drivers,
    examineDrivers: sandboxes.examineDrivers,
    pool: (signal) => orAbort(pool(), signal),
    openCellSession: cellSessions.open,
    createTurn: (turn) => createInterpreterTurn({ ...turn, source }),
    createCodeMode: (codeMode) => createCodeMode({ ...codeMode, engines: getEngines() }),
    createCodeModeTools: (codeMode) => createCodeModeTools({ ...codeMode, engines: getEngines() }),
    librarianPrompt: async () => librarianPrompt({ packages: (await snapshot()).packages, helpers: await helperDocs() }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Creates what leads to a sandbox: snapshot, drivers, the chosen driver and the pool. */
function createSandboxParts(options: RuntimeOptions, limits: SandboxLimits) {
  const { cacheDirectory, maxSandboxes = defaultMaxSandboxes(limits), driver: wanted = defaultSandboxSettings.driver } = options;
  const { poolSize = defaultSandboxSettings.poolSize, queueDeadlineMs = defaultSandboxSettings.queueDeadlineMs } = options;
  const gate = createGate({ places: maxSandboxes, deadlineMs: queueDeadlineMs });
  const snapshot = once(() => requireSnapshot({ cacheDirectory }));
  const runDirectory = once(() => openRunDirectory());
  const drivers = once(async () => createDrivers(options, await runDirectory()));
  const driver = once(async () => chooseDriver({ wanted, drivers: await drivers(), snapshot: await snapshot(), cacheDirectory, gate }));
  const pool = once(async () => new SandboxPool({ driver: await driver(), snapshot: await snapshot(), limits, size: poolSize, gate }));
  return {
    gate,
    snapshot,
    drivers,
    driver,
    pool,
    async examineDrivers(signal?: AbortSignal): Promise<DriverReport[]> {
      const reports: DriverReport[] = [];
      for (const one of await drivers())
        reports.push(await examineDriver({ driver: one, snapshot: await snapshot(), cacheDirectory, gate, fresh: true, signal }));
      return reports;
    },
    async [Symbol.asyncDispose]() {
      const started = [await pool.started(), ...((await drivers.started()) ?? []), await runDirectory.started()];
      for (const part of started) await part?.[Symbol.asyncDispose]();
    },
  };
}

/** Opens cell sessions over the pool, all with one artifact checker, and closes those that are still open at the end. */
function createCellSessions(pool: Lazy<SandboxPool>, runtimeLimits: SandboxLimits) {
  const openCellSessions = new Set<CellSession>();
  const artifactChecker = createArtifactChecker();
  return {
    async open({ limits = runtimeLimits, queue, signal }: OpenCellSessionOptions = {}): Promise<CellSession> {
      const sandboxPool = await orAbort(pool(), signal); // an abort does not stop the pool, which others share
      artifactChecker.warm();
      const session = openCellSession({
        artifactChecker,
        rollback: sandboxPool.driver.rollback,
        limits,
        queue,
        take: (takeSignal) => sandboxPool.take({ limits, signal: takeSignal }),
      });
      const close = async (): Promise<void> => {
        openCellSessions.delete(tracked);
        await session.close();
      };
      const tracked: CellSession = { ...session, close, [Symbol.asyncDispose]: close };
      openCellSessions.add(tracked);
      return tracked;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...openCellSessions].map((session) => session.close()));
      await artifactChecker[Symbol.asyncDispose]();
    },
  };
}

/** Strongest first. Each driver's preflight says whether this user can use it. */
function createDrivers({ cacheDirectory, searchPath }: RuntimeOptions, runDirectory: RunDirectory): SandboxDriver[] {
  const shared = { cacheDirectory, runDirectory, searchPath };
  return [createGvisorDriver(shared), createGvisorDriver({ ...shared, rootless: true }), createBubblewrapDriver({ runDirectory })];
}

interface Lazy<Value> {
  (): Promise<Value>;
  /** Returns the value if it was ever requested and created; otherwise null. */
  started(): Promise<Value | null>;
}

/** Creates a value on the first call and keeps it. After a failure, the next call tries again. */
function once<Value>(create: () => Promise<Value>): Lazy<Value> {
  let current: Promise<Value> | null = null;
  const get = (): Promise<Value> => {
    if (current === null) {
      const attempt = create();
      current = attempt;
      attempt.catch(() => {
        if (current === attempt) current = null;
      });
    }
    return current;
  };
  return Object.assign(get, { started: async () => (current === null ? null : await current.catch(() => null)) });
}

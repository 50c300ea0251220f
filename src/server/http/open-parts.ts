import { mkdirSync } from "node:fs";
import path from "node:path";
import type { ArtifactStore } from "../../artifacts/artifact-store.ts";
import type { Limiter } from "../../concurrency/create-limiter.ts";
import { bundledSample, type Configured, openConfigured } from "../../config/open-configured.ts";
import { createTables, type Tables } from "../../data/tables/create-tables.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";
import { demoQuestion } from "../../protocol/connect-model.ts";
import { openHistory, sqlite } from "../../history/open-history.ts";
import type { Authenticator } from "./authenticator.ts";
import { createTurnLimiter, createWorkLimiter } from "./client-limits.ts";
import { Conversations } from "./conversations.ts";
import type { Log } from "./create-log.ts";
import { createMcpEndpoint } from "./create-mcp-endpoint.ts";
import { createMetrics, type Metrics } from "./create-metrics.ts";
import { createTenantStores, type TenantStores, type TenantStoresOptions } from "./create-tenant-stores.ts";
import { HttpFailure } from "./http-failure.ts";
import { migrateArtifacts } from "./migrate-artifacts.ts";
import type { ServerOptions } from "./open-server.ts";
import { refuseSharedKernel } from "./refuse-shared-kernel.ts";
import { Turns } from "./turns/turns.ts";

/** All parts of a running server. Each route takes the ones that it uses. */
export interface ServerParts extends Awaited<ReturnType<typeof openParts>> {
  readonly authenticator: Authenticator;
  /** The public address, else the one on which it listens: `http://127.0.0.1:8787`. */
  readonly url: string;
  /** The configured public address; null without one. */
  readonly publicUrl: string | null;
}

const UNATTENDED_MS = 30_000;

/** Opens the parts that routes use. Each is pushed on `cleanup`, which closes them in reverse order. */
export async function openParts(options: ServerOptions, cleanup: AsyncDisposableStack) {
  const { loaded, environment, log, workingDirectory, unattendedMs = UNATTENDED_MS } = options;
  const { configuration } = loaded;
  const { directory } = configuration.artifacts;
  const isBundledSample = loaded.path === null;
  cleanup.use(lockDirectory(directory));
  const history = cleanup.use(openHistory({ file: path.join(directory, "history.sqlite") }));
  const uploads = createUploadStore({ directory: path.join(directory, "uploads"), maxBytes: configuration.server.uploadBytes });
  await migrateArtifacts(history, createTenantStores({ directory, history, uploads }), log);
  const recovered = history.recoverTurns(new Date().toISOString());
  if (recovered.length > 0) log.warn("turns_recovered", { turns: recovered.length });

  let onProbe = (_line: string): void => {}; // set below: the runtime emits probes, and the metrics need the runtime
  const servers = isBundledSample ? bundledSample() : undefined;
  const configured = cleanup.use(openConfigured({ loaded, environment, servers, workingDirectory, onProbe: (line) => onProbe(line) }));
  const { runtime } = configured;
  const driver = await runtime.driver(options.signal); // fails without a usable sandbox
  refuseSharedKernel({ driver: driver.name, configuration, isOpen: options.isOpen ?? false });
  const turnLimiter = createTurnLimiter(configuration.server);
  const metrics = openMetrics(configured, turnLimiter, log);
  onProbe = metrics.onProbe;

  const storesOf = createTenantStores({ directory, history, uploads, onArtifact: (artifact) => countArtifact(metrics, artifact) });
  const tables = cleanup.use(createTables({ openCellSession: runtime.openCellSession, gate: runtime.gate }));
  const { budgets, server } = configuration;
  const conversations = new Conversations({ history, storesOf, tables, uploads, budgets, maxBytes: server.conversationBytes, log });
  const model = await openModel(configured, options.model);
  const turns = new Turns({
    configured,
    model: () => model.open(),
    history,
    conversations,
    storesOf,
    turnLimiter,
    unattendedMs,
    log,
    onEvent: (event) => metrics.onTurnEvent(event),
  });
  return {
    configured,
    model,
    history,
    storesOf,
    uploads,
    conversations,
    turnLimiter,
    workLimiter: createWorkLimiter(),
    turns,
    metrics,
    log,
    mcp: cleanup.use(openMcp(configured, { tables, storesOf, metrics, log })),
    samples: samplesFor({ model: model.name, isBundledSample }),
  };
}

/** Also starts to warm the pool. If that fails, the cells that need a sandbox get the error. */
function openMetrics({ runtime }: Configured, turnLimiter: Limiter, log: Log): Metrics {
  let pool: Awaited<ReturnType<typeof runtime.pool>> | null = null;
  runtime.pool().then(
    (opened) => (pool = opened),
    (error: unknown) => log.error("pool_failed", { reason: (error as Error).message }),
  );
  return createMetrics({ sandboxLimiter: runtime.gate, pool: () => pool, turnLimiter, log });
}

function countArtifact(
  metrics: Metrics,
  { type, isFigureData, bytes }: Parameters<NonNullable<TenantStoresOptions["onArtifact"]>>[0],
): void {
  const kind = type === "png" ? "image" : isFigureData === true ? "figure_data" : "chart";
  metrics.artifacts.add(1, { kind });
  metrics.artifactBytes.add(bytes, { kind });
}

function openMcp(
  configured: Configured,
  { tables, storesOf, metrics, log }: { tables: Tables; metrics: Metrics; log: Log; storesOf: (tenant: string) => TenantStores },
): ReturnType<typeof createMcpEndpoint> {
  const published = (tenant: string): { artifacts: ArtifactStore } => ({ artifacts: storesOf(tenant).published });
  const parts = { ...configured, tables, storesOf: published, onProbe: metrics.onProbe };
  return createMcpEndpoint(parts, { onError: (error) => log.warn("mcp", { reason: error.message }) });
}

/** Opens the model once. Without a usable model, `open` rejects and MCP clients are still served. */
async function openModel(configured: Configured, name: string | null = configured.modelName) {
  try {
    const model = await configured.openModel(name);
    return { name, problem: null, open: async () => model };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const { code, message, hint } = error;
    const problem = code === "MODEL_MISSING" || hint === undefined ? message : `${message} ${hint}`;
    return { name: null, problem, open: () => Promise.reject(new HttpFailure({ code, message, hint })) };
  }
}

/** A question that the page suggests. The model `demo` has a script for the first one only. */
interface Sample {
  readonly title: string;
  readonly question: string;
}

const reservesSample: Sample = {
  title: "Reserves of all venues",
  question: demoQuestion,
};

const marketSamples: readonly Sample[] = [
  reservesSample,
  { title: "Daily returns", question: "Plot the distribution of daily BTC returns and say how fat its tails are." },
  { title: "Who grew", question: "Which venue gained the most reserves over the last year? Show all of them as a bar chart." },
  { title: "Price and flow", question: "Do months of net inflow go along with rising prices? Draw both and give the correlation." },
];

function samplesFor({ model, isBundledSample }: { model: string | null; isBundledSample: boolean }): readonly Sample[] {
  if (!isBundledSample) return [];
  return model === "demo" ? [reservesSample] : marketSamples;
}

/**
 * Allows one server per data directory: a second one would end the running turns of the first as abandoned.
 * The operating system releases the lock when the process ends, even if it is killed.
 */
function lockDirectory(directory: string): Disposable {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = path.join(directory, "server.lock");
  const database = new sqlite.DatabaseSync(file, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
  } catch (error) {
    database.close();
    throw new UsageError({
      code: "DIRECTORY_IN_USE",
      message: `Another server uses the data directory ${directory}.`,
      hint: "Stop the other server, or choose another directory (SLUICE_DATA, or artifacts.directory in the configuration).",
      cause: error,
    });
  }
  return { [Symbol.dispose]: () => database.close() };
}

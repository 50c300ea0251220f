import { mkdirSync } from "node:fs";
import path from "node:path";
import type { ArtifactStore } from "../../artifacts/artifact-store.ts";
import type { Limiter } from "../../concurrency/create-limiter.ts";
import { bundledSample, type Configured, openConfigured } from "../../config/open-configured.ts";
import type { Tables } from "../../data/conversation-data.ts";
import { createTables } from "../../data/tables/create-tables.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import { SluiceError, UsageError } from "../../errors/sluice-error.ts";
import { openHistory } from "../../history/open-history.ts";
import { sqlite } from "../../history/open-database.ts";
import { createMcpEndpoint } from "../mcp/create-mcp-endpoint.ts";
import type { Authenticator } from "./create-authenticator.ts";
import { createConversations } from "./conversations.ts";
import { createTurnGate, createWorkGate } from "./guard.ts";
import { HttpFailure } from "./http-failure.ts";
import type { Log } from "./create-log.ts";
import { createMetrics, type Metrics } from "./create-metrics.ts";
import type { ServerOptions } from "./open-server.ts";
import { createTenantStores, type TenantStores } from "./create-tenant-stores.ts";
import { Turns } from "./turns/turns.ts";

/** All parts of a running server. Each route names those that it uses. */
export interface ServerParts extends Awaited<ReturnType<typeof openParts>> {
  readonly authenticator: Authenticator;
  /** Of this server, as printed: `http://127.0.0.1:8787`, or what it is reached by. */
  readonly url: string;
  /** What it was told that clients reach it by; null where nothing stands between. */
  readonly publicUrl: string | null;
}

const UNATTENDED_MS = 30_000;

/** Opens what the routes work with. What is opened is put on `cleanup`, to be closed in the opposite order. */
export async function openParts(options: ServerOptions, cleanup: AsyncDisposableStack) {
  const { loaded, environment, log, workingDirectory, unattendedMs = UNATTENDED_MS } = options;
  const { configuration } = loaded;
  const { directory } = configuration.artifacts;
  const isBundledSample = loaded.path === null;
  cleanup.use(lockDirectory(directory));
  const history = cleanup.use(openHistory({ file: path.join(directory, "history.sqlite") }));
  const recovered = history.recoverTurns(new Date().toISOString());
  if (recovered.length > 0) log.warn("turns_recovered", { turns: recovered.length });

  let onProbe = (_line: string): void => {}; // probes come from parts that are there before what counts them
  const servers = isBundledSample ? bundledSample() : undefined;
  const configured = cleanup.use(openConfigured({ loaded, environment, servers, workingDirectory, onProbe: (line) => onProbe(line) }));
  const { runtime } = configured;
  await runtime.driver(options.signal); // without a sandbox nothing is served
  const gate = createTurnGate(configuration.server);
  const metrics = measure(configured, gate, log);
  onProbe = metrics.probe;

  const uploads = createUploadStore({ directory: path.join(directory, "uploads"), maxBytes: configuration.server.uploadBytes });
  const storesOf = createTenantStores({ directory, history, uploads, onArtifact: (artifact) => countArtifact(metrics, artifact) });
  const tables = cleanup.use(createTables({ openCellSession: runtime.openCellSession, gate: runtime.gate }));
  const conversations = createConversations({ history, storesOf, tables, uploads, budgets: configuration.budgets, log });
  const model = await serveModel(configured, options.model, isBundledSample);
  const turns = new Turns({
    configured,
    model: () => model.open(),
    history,
    conversations,
    storesOf,
    gate,
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
    gate,
    work: createWorkGate(),
    turns,
    metrics,
    log,
    mcp: cleanup.use(openMcp(configured, { tables, storesOf, metrics, log })),
    samples: samplesFor({ model: model.name, isBundledSample }),
  };
}

/** Gets the pool warm, and counts. A failure is told to the cell that needs a sandbox. */
function measure({ runtime }: Configured, gate: Limiter, log: Log): Metrics {
  let pool: Awaited<ReturnType<typeof runtime.pool>> | null = null;
  runtime.pool().then(
    (opened) => (pool = opened),
    (error: unknown) => log.error("pool_failed", { reason: (error as Error).message }),
  );
  return createMetrics({ gate: runtime.gate, pool: () => pool, turns: gate });
}

function countArtifact(metrics: Metrics, { type, bytes }: { type: string; bytes: number }): void {
  const kind = type === "png" ? "image" : "chart";
  metrics.artifacts.add(1, { kind });
  metrics.artifactBytes.add(bytes, { kind });
}

function openMcp(
  configured: Configured,
  { tables, storesOf, metrics, log }: { tables: Tables; metrics: Metrics; log: Log; storesOf: (tenant: string) => TenantStores },
): ReturnType<typeof createMcpEndpoint> {
  const published = (tenant: string): { artifacts: ArtifactStore } => ({ artifacts: storesOf(tenant).published });
  const parts = { ...configured, tables, storesOf: published, onProbe: metrics.probe };
  return createMcpEndpoint(parts, { onError: (error) => log.warn("mcp", { reason: error.message }) });
}

/** The model, opened once. With the bundled sample and no model named, `demo` answers, which needs no key. Without any the server still serves MCP clients. */
async function serveModel(configured: Configured, named: string | undefined, isBundledSample: boolean) {
  const name = named ?? configured.configuration.model ?? (isBundledSample ? "demo" : null);
  try {
    const model = await configured.openModel(name);
    return { name, problem: null, open: async () => model };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const problem = `${error.message} ${error.hint ?? ""}`.trim();
    const { code, message, hint } = error;
    return { name: null, problem, open: () => Promise.reject(new HttpFailure({ code, message, ...(hint !== undefined && { hint }) })) };
  }
}

/** Questions to click, for whoever has not thought of one yet. The model `demo` answers the first alone: it has no other script. */
interface Sample {
  readonly title: string;
  readonly question: string;
}

const demo: Sample = {
  title: "Reserves of all venues",
  question: "How did the total reserves of all venues change over two years, and how much of it was flow?",
};

const market: readonly Sample[] = [
  demo,
  { title: "Daily returns", question: "Plot the distribution of daily BTC returns and say how fat its tails are." },
  { title: "Who grew", question: "Which venue gained the most reserves over the last year? Show all of them as a bar chart." },
  { title: "Price and flow", question: "Do months of net inflow go along with rising prices? Draw both and give the correlation." },
];

function samplesFor({ model, isBundledSample }: { model: string | null; isBundledSample: boolean }): readonly Sample[] {
  if (!isBundledSample) return [];
  return model === "demo" ? [demo] : market;
}

/** One server a data directory: a second would take the turns of the first for those of a dead one. The lock is the system's, so it ends with the process, however that ends. */
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
      message: `Another server keeps its data in ${directory}.`,
      hint: "Stop it, or give this one a directory of its own (SLUICE_DATA, or artifacts.directory of the configuration).",
      cause: error,
    });
  }
  return { [Symbol.dispose]: () => database.close() };
}

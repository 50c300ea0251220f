import path from "node:path";
import type { ArtifactStore } from "../artifacts/contract.ts";
import { bundledSample } from "../config/bundled-sample.ts";
import { openConfigured, type Configured } from "../configured/open-configured.ts";
import { createTables } from "../data/tables/create-tables.ts";
import { createUploadStore } from "../data/uploads/create-upload-store.ts";
import { openHistory } from "../history/open-history.ts";
import { createMcpEndpoint } from "../mcp/server/create-mcp-endpoint.ts";
import { packageVersion } from "../package-version.ts";
import { createConversations } from "./conversations/create-conversations.ts";
import { createWorkGate } from "./guard/create-work-gate.ts";
import { lockDirectory } from "./lock-directory.ts";
import type { Log } from "./log/create-log.ts";
import { createMetrics, type Metrics } from "./metrics/create-metrics.ts";
import type { ServerOptions } from "./open-server.ts";
import { samplesFor } from "./samples.ts";
import type { ServerParts } from "./server-parts.ts";
import { serveModel } from "./serve-model.ts";
import { createTenantStores, type TenantStores } from "./stores/create-tenant-stores.ts";
import { createTurnGate, type TurnGate } from "./turns/create-turn-gate.ts";
import { createTurns } from "./turns/create-turns.ts";

/** Everything but who is let in, and where it listens. */
export type OpenedParts = Omit<ServerParts, "authenticator" | "url" | "publicUrl">;

const UNATTENDED_MS = 30_000;

/** Opens what the routes work with. What is opened is put on `cleanup`, to be closed in the opposite order. */
export async function openParts(options: ServerOptions, cleanup: AsyncDisposableStack): Promise<OpenedParts> {
  const { loaded, environment, log, workingDirectory, unattendedMs = UNATTENDED_MS } = options;
  const { configuration } = loaded;
  const { directory } = configuration.artifacts;
  const isBundledSample = loaded.path === null;
  cleanup.use(lockDirectory(directory));
  const history = cleanup.use(openHistory({ file: path.join(directory, "history.sqlite") }));
  const recovered = history.recover(new Date().toISOString());
  if (recovered.length > 0) log.warn("turns_recovered", { turns: recovered.length });

  const probes = createProbeRelay();
  const servers = isBundledSample ? bundledSample() : undefined;
  const configured = cleanup.use(openConfigured({ loaded, environment, servers, workingDirectory, onProbe: probes.relay }));
  const { runtime } = configured;
  await runtime.driver(options.signal); // without a sandbox nothing is served
  const gate = createTurnGate(configuration.server);
  const metrics = measure(configured, gate, log);
  probes.to(metrics.probe);

  const uploads = createUploadStore({ directory: path.join(directory, "uploads"), maxBytes: configuration.server.uploadBytes });
  const storesOf = createTenantStores({ directory, history, uploads, onArtifact: (artifact) => countArtifact(metrics, artifact) });
  const tables = cleanup.use(createTables({ openSession: runtime.openSession, gate: runtime.gate }));
  const conversations = createConversations({ history, storesOf, tables, uploads, budgets: configuration.budgets, log });
  const model = await serveModel({ configured, named: options.model, isBundledSample });
  const turns = createTurns({
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
    tables,
    uploads,
    conversations,
    gate,
    work: createWorkGate(),
    turns,
    metrics,
    log,
    mcp: cleanup.use(openMcp(configured, { tables, storesOf, metrics, log })),
    version: packageVersion,
    startedAt: new Date().toISOString(),
    samples: samplesFor({ model: model.name, isBundledSample }),
    selfTest: null,
  };
}

/** Probes come from parts that are there before what counts them. */
function createProbeRelay(): { relay: (line: string) => void; to: (sink: (line: string) => void) => void } {
  let sink = (_line: string): void => {};
  return { relay: (line) => sink(line), to: (next) => void (sink = next) };
}

/** Gets the pool warm, and counts. A failure is told to the cell that needs a sandbox. */
function measure({ runtime }: Configured, gate: TurnGate, log: Log): Metrics {
  let pool: Awaited<ReturnType<typeof runtime.pool>> | null = null;
  runtime.pool().then(
    (opened) => (pool = opened),
    (error: unknown) => log.error("pool_failed", { reason: (error as Error).message }),
  );
  return createMetrics({ gate: runtime.gate, pool: () => pool, turns: () => gate });
}

function countArtifact(metrics: Metrics, { type, bytes }: { type: string; bytes: number }): void {
  const kind = type === "png" ? "image" : "chart";
  metrics.artifacts.add(1, { kind });
  metrics.artifactBytes.add(bytes, { kind });
}

function openMcp(
  configured: Configured,
  { tables, storesOf, metrics, log }: Pick<ServerParts, "tables" | "metrics" | "log"> & { storesOf: (tenant: string) => TenantStores },
): ReturnType<typeof createMcpEndpoint> {
  const published = (tenant: string): { artifacts: ArtifactStore } => ({ artifacts: storesOf(tenant).published });
  const parts = { ...configured, tables, storesOf: published, onProbe: metrics.probe };
  return createMcpEndpoint(parts, { onError: (error) => log.warn("mcp", { reason: error.message }) });
}

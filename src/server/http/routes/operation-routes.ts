import {
  healthSchema,
  type Latency,
  type Operations,
  operationsSchema,
  type Readiness,
  readinessSchema,
  type SelfTest,
  selfTestSchema,
  type ServerInfo,
  serverInfoSchema,
} from "../../../protocol/http-operations.ts";
import { maxQuestionCharacters } from "../../../protocol/http-turns.ts";
import type { Histogram, HistogramReading } from "../create-metrics.ts";
import { packageVersion } from "../../../package-version.ts";
import type { ServerParts } from "../open-parts.ts";
import { json, originOf, type Route, type RouteRequest } from "./route.ts";

type OperationParts = Pick<
  ServerParts,
  "configured" | "model" | "history" | "work" | "metrics" | "gate" | "authenticator" | "samples" | "publicUrl"
>;

/** What is running, and how it does. */
export function operationRoutes(parts: OperationParts): Route[] {
  const startedAt = new Date().toISOString();
  let selfTest: SelfTest | null = null; // the last one that was asked for
  return [
    {
      method: "get",
      path: "/healthz",
      operationId: "health",
      summary: "Whether the process answers.",
      isOpen: true,
      answers: { 200: { description: "It does.", schema: healthSchema } },
      handle: () => json({ status: "ok" }),
    },
    {
      method: "get",
      path: "/readyz",
      operationId: "readiness",
      summary: "Whether a question could be answered: a sandbox, a model, a history that can be written.",
      answers: {
        200: { description: "It could.", schema: readinessSchema },
        503: { description: "It could not, and why.", schema: readinessSchema },
      },
      async handle() {
        const readiness = await toReadiness(parts);
        return json(readiness, { status: readiness.status === "ready" ? 200 : 503 });
      },
    },
    {
      method: "get",
      path: "/metrics",
      operationId: "metrics",
      summary: "Numbers for Prometheus, of all tenants together.",
      isForOperators: true,
      answers: { 200: { description: "The text format.", contentType: "text/plain" } },
      handle: () =>
        new Response(parts.metrics.toText(), {
          headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" },
        }),
    },
    {
      method: "get",
      path: "/api/info",
      operationId: "info",
      summary: "What is running, and what can be asked.",
      answers: { 200: { description: "The server.", schema: serverInfoSchema } },
      handle: async (request) => json(await toInfo(parts, request)),
    },
    {
      method: "get",
      path: "/api/ops",
      operationId: "operations",
      summary: "What the operator's page draws.",
      isForOperators: true,
      answers: { 200: { description: "The numbers of this server.", schema: operationsSchema } },
      handle: async () => json(await toOperations(parts, { startedAt, selfTest })),
    },
    {
      method: "post",
      path: "/api/ops/self-test",
      operationId: "selfTest",
      summary: "Try every sandbox driver for real.",
      isForOperators: true,
      answers: { 200: { description: "What was seen enforced.", schema: selfTestSchema } },
      async handle({ signal }) {
        selfTest = await runSelfTest(parts, signal);
        return json(selfTest);
      },
    },
  ];
}

async function toInfo(parts: OperationParts, { request, principal }: RouteRequest): Promise<ServerInfo> {
  const { configured, model, authenticator, samples, publicUrl } = parts;
  const { runtime, configuration, sources } = configured;
  const driver = await runtime.driver().then(
    ({ name }) => ({ driver: name }),
    (error: unknown) => ({ driver: null, driverProblem: (error as Error).message }),
  );
  const snapshot = await runtime.snapshot().then(
    ({ id }) => id,
    () => null,
  );
  return {
    schemaVersion: 1,
    name: "sluice",
    version: packageVersion,
    tenant: principal.tenant,
    isOperator: principal.isOperator,
    auth: authenticator.mode,
    ...driver,
    snapshot,
    model: model.name,
    ...(model.problem === null ? {} : { modelProblem: model.problem }),
    samples: [...samples],
    servers: [...sources.keys()].map((name) => ({ name })),
    limits: {
      uploadBytes: configuration.server.uploadBytes,
      questionCharacters: maxQuestionCharacters,
      maxTurns: configuration.server.maxTurnsPerClient,
    },
    mcpUrl: `${originOf(publicUrl, request)}/mcp`,
  };
}

async function toReadiness({ configured, model, history, work }: OperationParts): Promise<Readiness> {
  const trial = async (name: string, work: () => unknown): Promise<Readiness["checks"][number]> => {
    try {
      await work();
      return { name, ok: true, detail: null };
    } catch (error) {
      return { name, ok: false, detail: (error as Error).message };
    }
  };
  const checks = [
    await trial("sandbox", () => configured.runtime.driver()),
    await trial("history", () => history.inTransaction(() => history.tenants.list())),
    { name: "model", ok: model.problem === null, detail: model.problem },
    ...(work.isStopping ? [{ name: "server", ok: false, detail: "It is stopping." }] : []),
  ];
  // Without a model a server is still one for MCP clients: that is said, and no reason to take it out of service.
  const isReady = checks.every(({ name, ok }) => ok || name === "model");
  return { status: isReady ? "ready" : "not ready", checks };
}

async function runSelfTest({ configured }: OperationParts, signal: AbortSignal): Promise<SelfTest> {
  const reports = await configured.runtime.examineDrivers(signal);
  return {
    at: new Date().toISOString(),
    drivers: reports.map(({ name, usable, reason, checks }) => ({
      name,
      usable,
      reason: reason ?? null,
      checks: checks.map(({ name: what, ok, detail }) => ({ name: what, passed: ok, detail })),
    })),
  };
}

/** The same numbers as `/metrics`, in the shape that a page draws. */
async function toOperations(
  { configured, metrics, gate }: OperationParts,
  { startedAt, selfTest }: { startedAt: string; selfTest: SelfTest | null },
): Promise<Operations> {
  const { runtime, configuration } = configured;
  const pool = await runtime.pool().catch(() => null);
  const snapshot = await runtime.snapshot().catch(() => null);
  const starts = metrics.starts.values();
  const byStatus = metrics.cells.values();
  const byStop = metrics.turns.values();
  const bytes = metrics.artifactBytes.values();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    schemaVersion: 1,
    at: new Date().toISOString(),
    startedAt,
    version: packageVersion,
    driver: pool?.driver.name ?? null,
    snapshot: snapshot?.id ?? null,
    sandboxes: { places: runtime.gate.places, alive: runtime.gate.taken, waiting: runtime.gate.waiting },
    pool: { warm: pool?.warm ?? 0, size: configuration.sandbox.poolSize },
    starts: { pool: starts["pool"] ?? 0, restored: starts["restored"] ?? 0, forked: starts["forked"] ?? 0, cold: starts["cold"] ?? 0 },
    cells: { total: sum(byStatus), byStatus },
    turns: { running: gate.taken, queued: gate.waiting, total: sum(byStop), byStop },
    latencies: {
      cellRun: toLatency(metrics.cellRun),
      cellStart: toLatency(metrics.cellStart),
      turn: toLatency(metrics.turn),
      http: toLatency(metrics.http),
    },
    failures: failuresOf(byStatus, byStop),
    artifacts: Object.entries(metrics.artifacts.values()).map(([kind, count]) => ({ kind, count, bytes: bytes[kind] ?? 0 })),
    probes: [...metrics.probes],
    selfTest,
    memory: { rssBytes: rss, heapBytes: heapUsed },
  };
}

function failuresOf(cells: Readonly<Record<string, number>>, turns: Readonly<Record<string, number>>): Operations["failures"] {
  const failed = [
    ...Object.entries(cells).filter(([status]) => status !== "ok"),
    ...Object.entries(turns).filter(([stop]) => stop !== "complete_answer"),
  ];
  return failed.map(([cause, count]) => ({ cause, count })).sort((a, b) => b.count - a.count);
}

function toLatency(histogram: Histogram): Latency {
  const reading = histogram.read();
  return {
    count: reading.count,
    sumMs: reading.sum * 1000,
    buckets: reading.buckets.map(({ le, count }) => ({ le: le === Infinity ? null : le * 1000, count })),
    p50Ms: quantile(reading, 0.5),
    p95Ms: quantile(reading, 0.95),
  };
}

/** As Prometheus guesses it: even within a bucket. The last bucket has no end, so its beginning stands for it. */
function quantile({ count, buckets }: HistogramReading, share: number): number | null {
  if (count === 0) return null;
  const rank = share * count;
  const at = buckets.findIndex((bucket) => bucket.count >= rank);
  const [low, below] = at <= 0 ? [0, 0] : [buckets[at - 1]!.le, buckets[at - 1]!.count];
  const { le, count: upTo } = buckets[at]!;
  if (le === Infinity) return low * 1000;
  return 1000 * (low + (le - low) * ((rank - below) / Math.max(1, upTo - below)));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

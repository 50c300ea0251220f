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
import { packageVersion } from "../../../package-version.ts";
import type { Histogram, HistogramReading } from "../create-metrics.ts";
import type { ServerParts } from "../open-parts.ts";
import { describeQuarantined } from "../../../history/quarantine.ts";
import { json, originOf, type Route, type RouteRequest } from "./route.ts";

type OperationParts = Pick<
  ServerParts,
  "configured" | "model" | "history" | "workLimiter" | "metrics" | "turnLimiter" | "authenticator" | "samples" | "publicUrl"
>;

/** Health, readiness, metrics and the numbers of the operator's page. */
export function operationRoutes(parts: OperationParts): Route[] {
  const startedAt = new Date().toISOString();
  let latestSelfTest: SelfTest | null = null;
  return [
    ...monitoringRoutes(parts),
    {
      method: "get",
      path: "/api/info",
      operationId: "info",
      summary: "Get the version, model, sandbox driver and limits of the server.",
      responses: { 200: { description: "Facts about the server.", schema: serverInfoSchema } },
      handle: async (request) => json(await toInfo(parts, request)),
    },
    {
      method: "get",
      path: "/api/ops",
      operationId: "operations",
      summary: "Get the numbers that the operator's page shows.",
      isForOperators: true,
      responses: { 200: { description: "The numbers of this server.", schema: operationsSchema } },
      handle: async () => json(await toOperations(parts, { startedAt, selfTest: latestSelfTest })),
    },
    {
      method: "post",
      path: "/api/ops/self-test",
      operationId: "selfTest",
      summary: "Start a sandbox with every driver and check what it enforces.",
      isForOperators: true,
      responses: { 200: { description: "The checks of every driver.", schema: selfTestSchema } },
      async handle({ signal }) {
        latestSelfTest = await runSelfTest(parts, signal);
        return json(latestSelfTest);
      },
    },
  ];
}

/** For programs that watch the server. */
function monitoringRoutes(parts: OperationParts): Route[] {
  return [
    {
      method: "get",
      path: "/healthz",
      operationId: "health",
      summary: "Check whether the process responds.",
      isOpen: true,
      responses: { 200: { description: "The process responds.", schema: healthSchema } },
      handle: () => json({ status: "ok" }),
    },
    {
      method: "get",
      path: "/readyz",
      operationId: "readiness",
      summary: "Check whether the server can answer questions: sandbox, history and model.",
      responses: {
        200: { description: "The server is ready.", schema: readinessSchema },
        503: { description: "The server is not ready; the failed checks say why.", schema: readinessSchema },
      },
      async handle() {
        const readiness = await checkReadiness(parts);
        return json(readiness, { status: readiness.status === "ready" ? 200 : 503 });
      },
    },
    {
      method: "get",
      path: "/metrics",
      operationId: "metrics",
      summary: "Get metrics for Prometheus, of all tenants together.",
      isForOperators: true,
      responses: { 200: { description: "The metrics in the Prometheus text format.", contentType: "text/plain" } },
      handle: () =>
        new Response(parts.metrics.toText(), {
          headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" },
        }),
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
  const snapshot = await runtime.snapshot().catch(() => null);
  return {
    schemaVersion: 1,
    name: "sluice",
    version: packageVersion,
    tenant: principal.tenant,
    isOperator: principal.isOperator,
    auth: authenticator.mode,
    ...driver,
    snapshot: snapshot?.id ?? null,
    model: model.name,
    modelProblem: model.problem ?? undefined,
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

async function checkReadiness({ configured, model, history, workLimiter }: OperationParts): Promise<Readiness> {
  const runCheck = async (name: string, work: () => unknown): Promise<Readiness["checks"][number]> => {
    try {
      await work();
      return { name, ok: true, detail: null };
    } catch (error) {
      return { name, ok: false, detail: (error as Error).message };
    }
  };
  const checks = [
    await runCheck("sandbox", () => configured.runtime.driver()),
    await runCheck("history", () => history.inTransaction(() => history.tenants.list())),
    { name: "entries", ok: true, detail: describeQuarantined(history.quarantine.count()) },
    { name: "model", ok: model.problem === null, detail: model.problem },
    ...(workLimiter.isStopping ? [{ name: "server", ok: false, detail: "The server is stopping." }] : []),
  ];
  // A server without a model still serves MCP clients, so a missing model is reported but does not make it unready.
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
      checks: checks.map(({ name: check, ok, detail }) => ({ name: check, passed: ok, detail })),
    })),
  };
}

/** The numbers of `/metrics`, in the form that the page needs. */
async function toOperations(
  { configured, metrics, turnLimiter }: OperationParts,
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
    turns: { running: turnLimiter.taken, queued: turnLimiter.waiting, total: sum(byStop), byStop },
    latencies: {
      cellRun: toLatency(metrics.cellRun),
      cellStart: toLatency(metrics.cellStart),
      turn: toLatency(metrics.turn),
      http: toLatency(metrics.http),
    },
    failures: countFailures(byStatus, byStop),
    artifacts: Object.entries(metrics.artifacts.values()).map(([kind, count]) => ({ kind, count, bytes: bytes[kind] ?? 0 })),
    probes: [...metrics.probes],
    selfTest,
    memory: { rssBytes: rss, heapBytes: heapUsed },
  };
}

/** Most frequent first. */
function countFailures(cells: Readonly<Record<string, number>>, turns: Readonly<Record<string, number>>): Operations["failures"] {
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

/** Estimated as Prometheus does, by linear interpolation within a bucket. For the last bucket, which has no end, it is the lower bound. */
function quantile({ count, buckets }: HistogramReading, share: number): number | null {
  if (count === 0) return null;
  const rank = share * count;
  const index = buckets.findIndex((bucket) => bucket.count >= rank);
  const { le: upper, count: countToUpper } = buckets[index]!;
  const { le: lower, count: countToLower } = buckets[index - 1] ?? { le: 0, count: 0 };
  if (upper === Infinity) return lower * 1000;
  return 1000 * (lower + (upper - lower) * ((rank - countToLower) / Math.max(1, countToUpper - countToLower)));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

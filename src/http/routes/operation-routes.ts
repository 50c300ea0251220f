import {
  healthSchema,
  operationsSchema,
  readinessSchema,
  selfTestSchema,
  serverInfoSchema,
  type Readiness,
  type SelfTest,
  type ServerInfo,
} from "../../protocol/http-operations.ts";
import { maxQuestionCharacters } from "../../protocol/http-turns.ts";
import { toOperations } from "../metrics/to-operations.ts";
import type { ServerParts } from "../server-parts.ts";
import { defineRoute, json, type Route, type RouteRequest } from "./define-route.ts";
import { originOf } from "./origin-of.ts";

/** What is running, and how it does. */
export function operationRoutes(parts: ServerParts): Route[] {
  return [
    defineRoute({
      method: "get",
      path: "/healthz",
      operationId: "health",
      summary: "Whether the process answers.",
      tag: "operations",
      isOpen: true,
      answers: { 200: { description: "It does.", schema: healthSchema } },
      handle: () => json({ status: "ok" }),
    }),
    defineRoute({
      method: "get",
      path: "/readyz",
      operationId: "readiness",
      summary: "Whether a question could be answered: a sandbox, a model, a history that can be written.",
      tag: "operations",
      answers: {
        200: { description: "It could.", schema: readinessSchema },
        503: { description: "It could not, and why.", schema: readinessSchema },
      },
      async handle() {
        const readiness = await toReadiness(parts);
        return json(readiness, { status: readiness.status === "ready" ? 200 : 503 });
      },
    }),
    defineRoute({
      method: "get",
      path: "/metrics",
      operationId: "metrics",
      summary: "Numbers for Prometheus, of all tenants together.",
      tag: "operations",
      isForOperators: true,
      answers: { 200: { description: "The text format.", contentType: "text/plain" } },
      handle: () =>
        new Response(parts.metrics.toText(), {
          headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" },
        }),
    }),
    defineRoute({
      method: "get",
      path: "/api/info",
      operationId: "info",
      summary: "What is running, and what can be asked.",
      tag: "operations",
      answers: { 200: { description: "The server.", schema: serverInfoSchema } },
      handle: async (request) => json(await toInfo(parts, request)),
    }),
    defineRoute({
      method: "get",
      path: "/api/ops",
      operationId: "operations",
      summary: "What the operator's page draws.",
      tag: "operations",
      isForOperators: true,
      answers: { 200: { description: "The numbers of this server.", schema: operationsSchema } },
      handle: async () => json(await toOperations(parts)),
    }),
    defineRoute({
      method: "post",
      path: "/api/ops/self-test",
      operationId: "selfTest",
      summary: "Try every sandbox driver for real.",
      tag: "operations",
      isForOperators: true,
      answers: { 200: { description: "What was seen enforced.", schema: selfTestSchema } },
      async handle({ signal }) {
        parts.selfTest = await runSelfTest(parts, signal);
        return json(parts.selfTest);
      },
    }),
  ];
}

async function toInfo(parts: ServerParts, { request, principal }: RouteRequest): Promise<ServerInfo> {
  const { configured, model, authenticator, samples, version } = parts;
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
    version,
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
    mcpUrl: `${originOf(parts, request)}/mcp`,
  };
}

async function toReadiness({ configured, model, history, work }: ServerParts): Promise<Readiness> {
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
    await trial("history", () => history.exclusively(() => history.tenants.list())),
    { name: "model", ok: model.problem === null, detail: model.problem },
    ...(work.isStopping ? [{ name: "server", ok: false, detail: "It is stopping." }] : []),
  ];
  // Without a model a server is still one for MCP clients: that is said, and no reason to take it out of service.
  const isReady = checks.every(({ name, ok }) => ok || name === "model");
  return { status: isReady ? "ready" : "not ready", checks };
}

async function runSelfTest({ configured }: ServerParts, signal: AbortSignal): Promise<SelfTest> {
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

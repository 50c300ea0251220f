import { z } from "zod";
import { httpTimeSchema } from "./http-error.ts";

/** `GET /api/info`: what is running, and what it is asked with. */
export interface ServerInfo {
  schemaVersion: 1;
  name: "sluice";
  version: string;
  tenant: string;
  isOperator: boolean;
  auth: "token" | "none";
  /** Null when no sandbox can be had; `driverProblem` says why. */
  driver: string | null;
  driverProblem?: string | undefined;
  snapshot: string | null;
  /** Null when none is configured, and then nothing can be asked; `modelProblem` says what to set. */
  model: string | null;
  modelProblem?: string | undefined;
  samples: { title: string; question: string }[];
  servers: { name: string }[];
  limits: { uploadBytes: number; questionCharacters: number; maxTurns: number };
  mcpUrl: string;
}

export const serverInfoSchema: z.ZodType<ServerInfo> = z.strictObject({
  schemaVersion: z.literal(1),
  name: z.literal("sluice"),
  version: z.string(),
  tenant: z.string(),
  isOperator: z.boolean(),
  auth: z.enum(["token", "none"]),
  driver: z.string().nullable(),
  driverProblem: z.string().optional(),
  snapshot: z.string().nullable(),
  model: z.string().nullable(),
  modelProblem: z.string().optional(),
  samples: z.array(z.strictObject({ title: z.string(), question: z.string() })),
  servers: z.array(z.strictObject({ name: z.string() })),
  limits: z.strictObject({ uploadBytes: z.int(), questionCharacters: z.int(), maxTurns: z.int() }),
  mcpUrl: z.string(),
});

/** A distribution. `buckets` are cumulative, as Prometheus has them; the last `le` is null, which is all. */
export interface Latency {
  count: number;
  sumMs: number;
  buckets: { le: number | null; count: number }[];
  /** Null without a measurement. */
  p50Ms: number | null;
  p95Ms: number | null;
}

export interface SelfTest {
  at: string;
  drivers: { name: string; usable: boolean; reason: string | null; checks: { name: string; passed: boolean; detail: string | null }[] }[];
}

/** `GET /api/ops`: what the operator's page draws. */
export interface Operations {
  schemaVersion: 1;
  at: string;
  startedAt: string;
  version: string;
  driver: string | null;
  snapshot: string | null;
  sandboxes: { places: number; alive: number; waiting: number };
  pool: { warm: number; size: number };
  starts: Record<"pool" | "restored" | "forked" | "cold", number>;
  cells: { total: number; byStatus: Record<string, number> };
  turns: { running: number; queued: number; total: number; byStop: Record<string, number> };
  latencies: Record<"cellRun" | "cellStart" | "turn" | "http", Latency>;
  /** Most frequent first. */
  failures: { cause: string; count: number }[];
  artifacts: { kind: string; count: number; bytes: number }[];
  /** The last 200, oldest first. */
  probes: { at: string; line: string }[];
  selfTest: SelfTest | null;
  memory: { rssBytes: number; heapBytes: number };
}

const count = z.int().nonnegative();
const latency: z.ZodType<Latency> = z.strictObject({
  count,
  sumMs: z.number(),
  buckets: z.array(z.strictObject({ le: z.number().nullable(), count })),
  p50Ms: z.number().nullable(),
  p95Ms: z.number().nullable(),
});

export const selfTestSchema: z.ZodType<SelfTest> = z.strictObject({
  at: httpTimeSchema,
  drivers: z.array(
    z.strictObject({
      name: z.string(),
      usable: z.boolean(),
      reason: z.string().nullable(),
      checks: z.array(z.strictObject({ name: z.string(), passed: z.boolean(), detail: z.string().nullable() })),
    }),
  ),
});

export const operationsSchema: z.ZodType<Operations> = z.strictObject({
  schemaVersion: z.literal(1),
  at: httpTimeSchema,
  startedAt: httpTimeSchema,
  version: z.string(),
  driver: z.string().nullable(),
  snapshot: z.string().nullable(),
  sandboxes: z.strictObject({ places: count, alive: count, waiting: count }),
  pool: z.strictObject({ warm: count, size: count }),
  starts: z.strictObject({ pool: count, restored: count, forked: count, cold: count }),
  cells: z.strictObject({ total: count, byStatus: z.record(z.string(), count) }),
  turns: z.strictObject({ running: count, queued: count, total: count, byStop: z.record(z.string(), count) }),
  latencies: z.strictObject({ cellRun: latency, cellStart: latency, turn: latency, http: latency }),
  failures: z.array(z.strictObject({ cause: z.string(), count })),
  artifacts: z.array(z.strictObject({ kind: z.string(), count, bytes: count })),
  probes: z.array(z.strictObject({ at: httpTimeSchema, line: z.string() })),
  selfTest: selfTestSchema.nullable(),
  memory: z.strictObject({ rssBytes: count, heapBytes: count }),
});

export const healthSchema: z.ZodType<{ status: "ok" }> = z.strictObject({ status: z.literal("ok") });

/** `GET /readyz`. 200 when everything a turn needs is there, else 503. */
export interface Readiness {
  status: "ready" | "not ready";
  checks: { name: string; ok: boolean; detail: string | null }[];
}

export const readinessSchema: z.ZodType<Readiness> = z.strictObject({
  status: z.enum(["ready", "not ready"]),
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string().nullable() })),
});

/** `POST /api/login-links`. */
export const loginLinkSchema: z.ZodType<{ url: string; expiresAt: string }> = z.strictObject({
  url: z.string(),
  expiresAt: httpTimeSchema,
});

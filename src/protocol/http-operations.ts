import { z } from "zod";
import { httpTimeSchema } from "./http-error.ts";

/** Response of `GET /api/info`: the server and how to use it. */
export const serverInfoSchema = z.strictObject({
  schemaVersion: z.literal(1),
  name: z.literal("sluice"),
  version: z.string(),
  tenant: z.string(),
  isOperator: z.boolean(),
  auth: z.enum(["token", "none"]),
  /** Null when no sandbox is available; `driverProblem` says why. */
  driver: z.string().nullable(),
  driverProblem: z.string().optional(),
  snapshot: z.string().nullable(),
  /** `demo` when no model is connected: it answers its sample question only. Null when nothing can answer; `modelProblem` says why. */
  model: z.string().nullable(),
  modelProblem: z.string().optional(),
  samples: z.array(z.strictObject({ title: z.string(), question: z.string() })),
  servers: z.array(z.strictObject({ name: z.string() })),
  limits: z.strictObject({ uploadBytes: z.int(), questionCharacters: z.int(), maxTurns: z.int() }),
  mcpUrl: z.string(),
});

const count = z.int().nonnegative();

/** A distribution. `buckets` are cumulative, as in Prometheus; the last `le` is null and counts all. */
const latency = z.strictObject({
  count,
  sumMs: z.number(),
  buckets: z.array(z.strictObject({ le: z.number().nullable(), count })),
  /** Null without measurements. */
  p50Ms: z.number().nullable(),
  p95Ms: z.number().nullable(),
});

export const selfTestSchema = z.strictObject({
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

/** Response of `GET /api/ops`: the data of the operator's page. */
export const operationsSchema = z.strictObject({
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
  /** Most frequent first. */
  failures: z.array(z.strictObject({ cause: z.string(), count })),
  artifacts: z.array(z.strictObject({ kind: z.string(), count, bytes: count })),
  /** The last 200, oldest first. */
  probes: z.array(z.strictObject({ at: httpTimeSchema, line: z.string() })),
  selfTest: selfTestSchema.nullable(),
  memory: z.strictObject({ rssBytes: count, heapBytes: count }),
});

export const healthSchema = z.strictObject({ status: z.literal("ok") });

/** Response of `GET /readyz`: 200 when everything that a turn needs is available, otherwise 503. */
export const readinessSchema = z.strictObject({
  status: z.enum(["ready", "not ready"]),
  checks: z.array(z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string().nullable() })),
});

/** Response of `POST /api/login-links`. */
export const loginLinkSchema = z.strictObject({ url: z.string(), expiresAt: httpTimeSchema });

export type ServerInfo = z.infer<typeof serverInfoSchema>;
export type Latency = z.infer<typeof latency>;
export type SelfTest = z.infer<typeof selfTestSchema>;
export type Operations = z.infer<typeof operationsSchema>;
export type Readiness = z.infer<typeof readinessSchema>;

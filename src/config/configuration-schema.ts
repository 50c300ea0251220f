import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import { defaultExecuteLimits, type ExecuteLimits } from "../execute/contract.ts";
import type { SessionConfiguration } from "../execute/session/contract.ts";
import { sessionConfigurationSchema } from "../execute/session/session-configuration.ts";
import type { ModelProviders } from "../models/contract.ts";
import { parseModelName } from "../models/parse-model-name.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";
import { defaultCallLimits } from "./default-call-limits.ts";
import { defaultLimits } from "../sandbox/limits.ts";
import type {
  ArtifactsConfiguration,
  AuthConfiguration,
  BudgetsConfiguration,
  CallLimits,
  ExecuteConfiguration,
  RetentionConfiguration,
  SandboxConfiguration,
  ServeConfiguration,
  ServerConfiguration,
  ToolsConfiguration,
} from "./contract.ts";

/** `sluice.config.json` as a person writes it: everything may be left out. */
export interface ConfigurationFile {
  /** For editors; it means nothing here. */
  readonly $schema?: string | undefined;
  readonly mcpServers?: Readonly<Record<string, ServerConfiguration>> | undefined;
  readonly model?: string | undefined;
  readonly models?: ModelProviders | undefined;
  readonly sandbox?: Partial<SandboxConfiguration> | undefined;
  readonly limits?:
    | {
        readonly sandbox?: Partial<SandboxLimits> | undefined;
        readonly execute?: Partial<ExecuteLimits> | undefined;
        readonly mcp?: Partial<CallLimits> | undefined;
      }
    | undefined;
  readonly execute?: Partial<ExecuteConfiguration> | undefined;
  readonly artifacts?: Partial<ArtifactsConfiguration> | undefined;
  readonly session?: SessionConfiguration | undefined;
  readonly budgets?: Partial<BudgetsConfiguration> | undefined;
  readonly tools?: Partial<ToolsConfiguration> | undefined;
  readonly auth?: Partial<AuthConfiguration> | undefined;
  readonly server?:
    | (Partial<Omit<ServeConfiguration, "retention">> & { readonly retention?: Partial<RetentionConfiguration> | undefined })
    | undefined;
}

/** A timer takes no more: some 24 days. */
const MAX_MS = 2_147_483_647;

const count = z.int().min(1);
const milliseconds = count.max(MAX_MS);
const name = z.string().min(1).max(200);
const texts = z.record(name, z.string());

function isHttp(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === "http:" || protocol === "https:";
}

const httpUrl = z.string().refine(isHttp, "must be a URL that begins with http:// or https://");

export function isOrigin(text: string): boolean {
  const origin = isHttp(text) ? new URL(text).origin : null;
  return origin !== null && (text.toLowerCase() === origin || text.toLowerCase() === `${origin}/`);
}

const stdioOnly = ["args", "env", "cwd"] as const;

/** One object for both ways, so that a wrong key is told with the right ones of both. */
const server = z
  .strictObject({
    command: z.string().min(1).optional(),
    args: z.array(z.string()).optional(),
    env: texts.optional(),
    cwd: z.string().min(1).optional(),
    url: httpUrl.optional(),
    headers: texts.optional(),
    expose: z.boolean().optional(),
    allow: z.array(name.regex(/^(?:\*|[^*]+)$/, "must be the name of a tool, or * for all of this server's")).optional(),
  })
  .superRefine((entry, context) => {
    const wrong = (path: string[], message: string): void => context.addIssue({ code: "custom", path, message });
    if (entry.command === undefined && entry.url === undefined) return wrong([], "needs a command, or a url");
    if (entry.command !== undefined && entry.url !== undefined) return wrong([], "has both a command and a url: one of them has to go");
    if (entry.command !== undefined && entry.headers !== undefined) wrong(["headers"], "is for a server with a url; a command takes env");
    if (entry.url === undefined) return;
    for (const key of stdioOnly) if (entry[key] !== undefined) wrong([key], "is for a server with a command");
  }) as unknown as z.ZodType<ServerConfiguration>;

const provider = { baseUrl: httpUrl.optional(), apiKey: z.string().min(1).optional(), headers: texts.optional() };

const models: z.ZodType<ModelProviders> = z.strictObject({
  anthropic: z.strictObject(provider).optional(),
  openai: z
    .strictObject({
      ...provider,
      organization: z.string().optional(),
      project: z.string().optional(),
      api: z.enum(["responses", "chat"]).optional(),
    })
    .optional(),
  "openai-compatible": z.strictObject({ ...provider, structuredOutputs: z.boolean().optional() }).optional(),
  gateway: z.strictObject(provider).optional(),
});

const model = z.string().superRefine((text, context) => {
  try {
    parseModelName(text);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    context.addIssue({ code: "custom", message: `${error.message} ${error.hint ?? ""}`.trim() });
  }
});

const allowEntry = name.regex(/^(?:[^*]+|[^*]+__\*)$/, "must be server__tool, tool, or server__*");

export const configurationSchema: z.ZodType<ConfigurationFile> = z.strictObject({
  $schema: z.string().optional(),
  mcpServers: z.record(name, server).optional(),
  model: model.optional(),
  models: models.optional(),
  sandbox: z
    .strictObject({
      driver: z.enum(["auto", "gvisor", "gvisor-rootless", "bubblewrap"]).optional(),
      poolSize: z.int().min(0).optional(),
      maxSandboxes: count.optional(),
      queueDeadlineMs: milliseconds.optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      sandbox: limitsLike(defaultLimits).optional(),
      execute: limitsLike(defaultExecuteLimits).optional(),
      mcp: limitsLike(defaultCallLimits).optional(),
    })
    .optional(),
  execute: z
    .strictObject({
      engine: z.enum(["auto", "monty", "cpython"]).optional(),
      isolation: z.enum(["namespaces", "process-only"]).optional(),
    })
    .optional(),
  artifacts: z.strictObject({ directory: z.string().min(1).optional() }).optional(),
  session: sessionConfigurationSchema.optional(),
  budgets: z
    .strictObject({
      steps: count.max(200).optional(),
      chartBoost: z.int().min(0).max(200).optional(),
      wallMs: milliseconds.optional(),
      previewBytes: z.int().min(256).optional(),
      stepBytes: z.int().min(1024).optional(),
      tokens: count.optional(),
      cost: z
        .strictObject({
          maximum: z.number().gt(0),
          inputPerMillionTokens: z.number().min(0),
          outputPerMillionTokens: z.number().min(0),
        })
        .optional(),
    })
    .optional(),
  tools: z.strictObject({ allow: z.array(allowEntry).optional(), toolPolicy: z.enum(["annotations", "read-only"]).optional() }).optional(),
  auth: z
    .strictObject({
      tokens: z
        .array(
          z.strictObject({
            tenant: name,
            sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 digits of lower-case hexadecimal"),
            operator: z.boolean().optional(),
          }),
        )
        .optional(),
    })
    .optional(),
  server: z
    .strictObject({
      publicUrl: z
        .string()
        .refine(isOrigin, "must be http:// or https:// and a host, with a port or without, and nothing after it")
        .optional(),
      allowedHosts: z.array(name.regex(/^[A-Za-z0-9.-]+$/, "must be the name of a host, without a port")).optional(),
      maxTurns: count.optional(),
      maxTurnsPerClient: count.optional(),
      maxQueuedPerClient: z.int().min(0).optional(),
      queueDeadlineMs: milliseconds.optional(),
      drainMs: z.int().min(0).max(MAX_MS).optional(),
      uploadBytes: count.optional(),
      retention: z.strictObject({ days: z.number().gt(0).optional(), maxBytes: count.optional() }).optional(),
    })
    .optional(),
});

/** A whole number for every limit there is. */
function limitsLike<Limits extends object>(defaults: Limits): z.ZodType<Partial<Limits>> {
  const entries = Object.keys(defaults).map((key) => [key, (key.endsWith("Ms") ? milliseconds : count).optional()]);
  return z.strictObject(Object.fromEntries(entries)) as unknown as z.ZodType<Partial<Limits>>;
}

import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import { executeLimitsSchema, executeSettingsSchema } from "../execute/engine.ts";
import { identityConfigurationSchema } from "../execute/identity/identity-configuration.ts";
import { httpServerSchema, mcpLimitsSchema, stdioServerSchema, type McpServerEntry } from "../tools/mcp/mcp-source-options.ts";
import { modelProvidersSchema, parseModelName } from "../models/model-settings.ts";
import { count, countOrNone, httpUrl, maxTimeMs, milliseconds } from "../protocol/setting.ts";
import { sandboxLimitsSchema, sandboxSettingsSchema } from "../sandbox/limits.ts";
import { DEFAULT_CONCURRENT_CALLS } from "../tools/create-tool-catalog.ts";
import { budgetsSchema } from "../turn/budgets.ts";

const name = z.string().min(1).max(200);

export function isOrigin(text: string): boolean {
  const origin = httpUrl.safeParse(text).success ? new URL(text).origin : null;
  return origin !== null && (text.toLowerCase() === origin || text.toLowerCase() === `${origin}/`);
}

const stdioOnly = ["args", "env", "cwd"] as const;

const serverOptions = z.strictObject({
  expose: z.boolean().optional().describe("`sluice mcp` passes the server's tools through"),
  allow: z
    .array(name.regex(/^(?:\*|[^*]+)$/, "must be the name of a tool, or * for all of this server's"))
    .optional()
    .describe("tools of this server that say that they change something and may be called; `*` for all"),
});

/** One object for both ways, so that a wrong key is told with the right ones of both. */
const server = z
  .strictObject({ ...stdioServerSchema.partial().shape, ...httpServerSchema.partial().shape, ...serverOptions.shape })
  .superRefine((entry, context) => {
    const wrong = (path: string[], message: string): void => context.addIssue({ code: "custom", path, message });
    if (entry.command === undefined && entry.url === undefined) return wrong([], "needs a command, or a url");
    if (entry.command !== undefined && entry.url !== undefined) return wrong([], "has both a command and a url: one of them has to go");
    if (entry.command !== undefined && entry.headers !== undefined) wrong(["headers"], "is for a server with a url; a command takes env");
    if (entry.url === undefined) return;
    for (const key of stdioOnly) if (entry[key] !== undefined) wrong([key], "is for a server with a command");
  })
  .transform((entry) => entry as McpServerEntry & z.infer<typeof serverOptions>);

const model = z.string().superRefine((text, context) => {
  try {
    parseModelName(text);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    context.addIssue({ code: "custom", message: `${error.message} ${error.hint ?? ""}`.trim() });
  }
});

const allowEntry = name.regex(/^(?:[^*]+|[^*]+__\*)$/, "must be server__tool, tool, or server__*");

const callLimits = mcpLimitsSchema.extend({
  maxConcurrentCalls: count.default(DEFAULT_CONCURRENT_CALLS).describe("calls to all servers together, of all callers; more wait in line"),
});

const token = z.strictObject({
  tenant: name,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 digits of lower-case hexadecimal"),
  operator: z.boolean().optional(),
});

const serve = z.strictObject({
  publicUrl: z
    .string()
    .refine(isOrigin, "must be http:// or https:// and a host, with a port or without, and nothing after it")
    .optional()
    .describe("what clients reach `sluice serve` by behind a proxy, as `https://sluice.example`: see [server.md](server.md)"),
  allowedHosts: z
    .array(name.regex(/^[A-Za-z0-9.-]+$/, "must be the name of a host, without a port"))
    .default([])
    .describe("names that `sluice serve` may be reached by, besides localhost, this machine's name and addresses"),
  maxTurns: count.default(16).describe("turns that run at once; more wait in line"),
  maxTurnsPerClient: count.default(8).describe("the same, of one tenant"),
  maxQueuedPerClient: countOrNone.default(100).describe("turns of one tenant that may wait; the next gets 429"),
  queueDeadlineMs: milliseconds.default(60_000).describe("then a turn in line gets 429, too"),
  drainMs: countOrNone.max(maxTimeMs).default(10_000).describe("how long running turns may go on when the server is told to stop"),
  uploadBytes: count.default(256 * 1024 * 1024).describe("the largest file that may be uploaded"),
  retention: z
    .strictObject({
      days: z.number().gt(0).default(30).describe("conversations that were not used for so long are removed"),
      maxBytes: count.default(10 * 1024 ** 3).describe("of one tenant; when it has more, its oldest conversations are removed"),
    })
    .prefault({}),
});

/** `sluice.config.json`: everything may be left out. docs/configuration.md is made from it (scripts/write-docs.ts). */
export const configurationSchema = z.strictObject({
  $schema: z.string().optional().describe("for editors; it means nothing here"),
  mcpServers: z.record(name, server).default({}),
  model: model
    .optional()
    .transform((text) => text ?? null)
    .describe("see [models.md](models.md)"),
  models: modelProvidersSchema.default({}),
  sandbox: sandboxSettingsSchema.prefault({}),
  limits: z
    .strictObject({
      sandbox: sandboxLimitsSchema.prefault({}),
      execute: executeLimitsSchema.prefault({}),
      mcp: callLimits.prefault({}),
    })
    .prefault({}),
  execute: executeSettingsSchema.prefault({}),
  artifacts: z
    .strictObject({
      directory: z.string().min(1).optional().describe("where figures, charts and datasets are kept; default: in the data directory"),
    })
    .prefault({}),
  session: identityConfigurationSchema
    .optional()
    .transform((session) => session ?? null)
    .describe("`identities`, `regions`, `profiles`, `identityRequired`, see [session-state.md](session-state.md)"),
  budgets: budgetsSchema.prefault({}),
  tools: z
    .strictObject({
      allow: z
        .array(allowEntry)
        .default([])
        .describe("tools of any server that say that they change something and may be called: `server__tool`, `tool`, `server__*`"),
      toolPolicy: z
        .enum(["annotations", "read-only"])
        .default("annotations")
        .describe("`read-only` demands `readOnlyHint` of every tool, see [tools.md](tools.md)"),
    })
    .prefault({}),
  auth: z
    .strictObject({
      tokens: z
        .array(token)
        .default([])
        .describe(
          "`tenant` and `sha256` (lower-case hexadecimal) of each token; the token itself is in no file; `operator` set to true lets it see `/ops` where there are several tenants",
        ),
    })
    .prefault({}),
  server: serve.prefault({}),
});

export type ServerConfiguration = z.infer<typeof server>;
export type AuthToken = z.infer<typeof token>;
type ConfigurationFile = z.infer<typeof configurationSchema>;

/** `sluice.config.json` as it takes effect: references expanded, relative paths made absolute, defaults filled in. */
export type Configuration = Omit<ConfigurationFile, "$schema" | "artifacts"> & { artifacts: { directory: string } };

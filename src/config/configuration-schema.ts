import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import { executeLimitsSchema, executeSettingsSchema } from "../execute/engine.ts";
import { identityConfigurationSchema } from "../execute/identity/identity-configuration.ts";
import { httpServerSchema, mcpLimitsSchema, stdioServerSchema, type McpServerEntry } from "../tools/mcp/mcp-source-options.ts";
import { modelProvidersSchema, parseModelName } from "../models/model-settings.ts";
import { count, countOrNone, httpUrl, maxTimeMs, milliseconds } from "../protocol/setting.ts";
import { sandboxLimitsSchema, sandboxSettingsSchema } from "../sandbox/limits.ts";
import { DEFAULT_CONCURRENT_CALLS } from "../tools/create-tool-catalog.ts";
import { budgetsSchema, defaultWallMs } from "../turn/budgets.ts";

const name = z.string().min(1).max(200);

/** Whether a string is an http(s) origin such as `https://sluice.example:8443`, with or without a trailing slash. */
export function isOrigin(text: string): boolean {
  const origin = httpUrl.safeParse(text).success ? new URL(text).origin : null;
  return origin !== null && (text.toLowerCase() === origin || text.toLowerCase() === `${origin}/`);
}

/** Keys that only servers with a command have. */
const stdioOnly = ["args", "env", "cwd"] as const;

const serverOptions = z.strictObject({
  expose: z.boolean().optional().describe("`sluice mcp` offers this server's tools to its client"),
  allow: z
    .array(name.regex(/^(?:\*|[^*]+)$/, "must be a tool name, or * for all tools of this server"))
    .optional()
    .describe(
      "tools of this server that are called without approval; `*` for all. Tools with `readOnlyHint` need no entry, see [tools.md](tools.md#policy)",
    ),
});

/** One object for both kinds of server, so that the message for an unknown key lists the keys of both. */
const mcpServer = z
  .strictObject({ ...stdioServerSchema.partial().shape, ...httpServerSchema.partial().shape, ...serverOptions.shape })
  .superRefine((entry, context) => {
    const addIssue = (path: string[], message: string): void => context.addIssue({ code: "custom", path, message });
    if (entry.command === undefined && entry.url === undefined) return addIssue([], "needs a command or a url");
    if (entry.command !== undefined && entry.url !== undefined) return addIssue([], "has both a command and a url; remove one of them");
    if (entry.command !== undefined && entry.headers !== undefined)
      addIssue(["headers"], "is only for servers with a url; use env for a command");
    if (entry.url === undefined) return;
    for (const key of stdioOnly) if (entry[key] !== undefined) addIssue([key], "is only for servers with a command");
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
  maxConcurrentCalls: count.default(DEFAULT_CONCURRENT_CALLS).describe("calls to all servers at the same time; further calls wait"),
});

const token = z.strictObject({
  tenant: name,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lowercase hexadecimal digits"),
  operator: z.boolean().optional(),
  subject: name.optional(),
});

const serverSettings = z.strictObject({
  publicUrl: z
    .string()
    .refine(isOrigin, "must be http:// or https:// and a host, with an optional port and nothing after it")
    .optional()
    .describe(
      "the address that clients use when `sluice serve` runs behind a proxy, such as `https://sluice.example`, see [server.md](server.md)",
    ),
  allowedHosts: z
    .array(name.regex(/^[A-Za-z0-9.-]+$/, "must be a host name without a port"))
    .default([])
    .describe("additional host names that `sluice serve` accepts; localhost and this machine's name and addresses are always accepted"),
  allowTenantsToShareKernel: z
    .boolean()
    .default(false)
    .describe(
      "lets several tenants run cells under bubblewrap, where they share the kernel of the machine; without it, such a server does not start, see [SECURITY.md](../SECURITY.md)",
    ),
  maxTurns: count.default(16).describe("turns that run at the same time; further turns wait"),
  maxTurnsPerClient: count.default(8).describe("the same, per tenant"),
  maxQueuedPerClient: countOrNone.default(100).describe("turns of one tenant that may wait; further requests get 429"),
  queueDeadlineMs: milliseconds.default(60_000).describe("how long a turn may wait before its request gets 429"),
  drainMs: countOrNone.max(maxTimeMs).default(10_000).describe("how long running turns may continue after the server was asked to stop"),
  uploadBytes: count.default(256 * 1024 * 1024).describe("largest file that can be uploaded"),
  conversationBytes: count
    .default(2 * 1024 ** 3)
    .describe(
      "what one conversation may have on disk: uploads, evidence, artifacts, datasets and rows; more is refused, nothing is removed",
    ),
  retention: z
    .strictObject({
      days: z.number().gt(0).default(30).describe("remove conversations that were not used for this many days"),
      maxBytes: count
        .default(10 * 1024 ** 3)
        .describe("storage per tenant, all files and rows; above it, the tenant's oldest conversations are removed"),
    })
    .prefault({}),
});

/** The schema of `sluice.config.json`. Every key is optional. scripts/write-docs.ts generates docs/configuration.md from it. */
export const configurationSchema = z
  .strictObject({
    $schema: z.string().optional().describe("for editors; ignored by Sluice"),
    mcpServers: z.record(name, mcpServer).default({}),
    model: model
      .optional()
      .transform((text) => text ?? null)
      .describe("the language model, see [models.md](models.md)"),
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
        directory: z
          .string()
          .min(1)
          .optional()
          .describe("directory for figures, charts and datasets; default: `artifacts` in the data directory"),
      })
      .prefault({}),
    session: identityConfigurationSchema
      .optional()
      .transform((session) => session ?? null)
      .describe(
        "the identities that scripts can act as: `identities`, `regions`, `profiles`, `identityRequired`, see [identity.md](identity.md)",
      ),
    budgets: budgetsSchema.prefault({}),
    tools: z
      .strictObject({
        allow: z
          .array(allowEntry)
          .default([])
          .describe("tools of any server that are called without approval: `server__tool`, `tool` or `server__*`"),
        toolPolicy: z
          .enum(["annotations", "read-only"])
          .default("annotations")
          .describe("`read-only` allows only tools that declare `readOnlyHint`, see [tools.md](tools.md)"),
      })
      .prefault({}),
    auth: z
      .strictObject({
        tokens: z
          .array(token)
          .default([])
          .describe(
            "`tenant` and `sha256` (lowercase hexadecimal) of each token; the token itself is stored nowhere; `operator` set to true gives access to `/ops` if there are several tenants; tokens of one tenant with the same `subject` belong to the same account, see [identity.md](identity.md)",
          ),
      })
      .prefault({}),
    server: serverSettings.prefault({}),
  })
  .superRefine(({ budgets: { wallMs }, limits: { sandbox } }, context) => {
    // The default is accepted with any sandbox: most turns need less.
    if (wallMs <= Math.max(sandbox.leaseTimeoutMs, defaultWallMs)) return;
    const message = `must be at most ${sandbox.leaseTimeoutMs}, the life of a sandbox; to allow more, raise limits.sandbox.leaseTimeoutMs, too`;
    context.addIssue({ code: "custom", path: ["budgets", "wallMs"], message });
  });

export type ServerConfiguration = z.infer<typeof mcpServer>;
export type AuthToken = z.infer<typeof token>;
type ConfigurationFile = z.infer<typeof configurationSchema>;

/** The effective configuration: references expanded, relative paths made absolute, defaults filled in. */
export type Configuration = Omit<ConfigurationFile, "$schema" | "artifacts"> & { artifacts: { directory: string } };

import type { EngineSetting } from "../execute/choose-engine.ts";
import type { ExecuteLimits } from "../execute/contract.ts";
import type { MontyIsolation } from "../execute/monty/child-command.ts";
import type { SessionConfiguration } from "../execute/session/contract.ts";
import type { HttpServerEntry, McpLimits, StdioServerEntry } from "../mcp/client/contract.ts";
import type { ModelProviders } from "../models/contract.ts";
import type { DriverName, SandboxLimits } from "../sandbox/contract.ts";
import type { TurnBudgets } from "../turn/budgets.ts";

/** `sluice.config.json` as it takes effect: references expanded, relative paths made absolute, defaults filled in. */
export interface Configuration {
  /** By name, in the shape that desktop clients use. */
  readonly mcpServers: Readonly<Record<string, ServerConfiguration>>;
  /** `anthropic:…`, `openai:…`, `openai-compatible:…`, `gateway:…`, `provider/model`, `script:FILE.json`, `demo`. Null when none is configured. */
  readonly model: string | null;
  readonly models: ModelProviders;
  readonly sandbox: SandboxConfiguration;
  readonly limits: LimitsConfiguration;
  readonly execute: ExecuteConfiguration;
  readonly artifacts: ArtifactsConfiguration;
  /** Identities, regions and profiles. Null when there are none: then there are no tools for them. */
  readonly session: SessionConfiguration | null;
  readonly budgets: BudgetsConfiguration;
  readonly tools: ToolsConfiguration;
  readonly auth: AuthConfiguration;
  readonly server: ServeConfiguration;
}

export type ServerConfiguration = (StdioServerEntry | HttpServerEntry) & {
  /** `sluice mcp` passes the server's tools through to its client. */
  readonly expose?: boolean | undefined;
  /** Tools of this server that say that they change something and may be called; `*` for all of them. */
  readonly allow?: readonly string[] | undefined;
};

export interface SandboxConfiguration {
  readonly driver: DriverName | "auto";
  readonly poolSize: number;
  /** When it is left out: what fits three quarters of the machine's memory. */
  readonly maxSandboxes?: number | undefined;
  readonly queueDeadlineMs: number;
}

export interface LimitsConfiguration {
  readonly sandbox: SandboxLimits;
  readonly execute: ExecuteLimits;
  readonly mcp: CallLimits;
}

export interface CallLimits extends McpLimits {
  /** To all servers together, of everybody who calls; more wait in line. */
  readonly maxConcurrentCalls: number;
}

export interface ExecuteConfiguration {
  readonly engine: EngineSetting;
  readonly isolation: MontyIsolation;
}

export interface ArtifactsConfiguration {
  readonly directory: string;
}

/** What a turn may use, as far as a file sets it. */
export type BudgetsConfiguration = Pick<TurnBudgets, "steps" | "chartBoost" | "wallMs" | "previewBytes" | "stepBytes" | "tokens" | "cost">;

export interface ToolsConfiguration {
  /** `server__tool`, `tool`, or `server__*`. What the entries of servers allow comes on top: see `toolPolicyOf`. */
  readonly allow: readonly string[];
  readonly toolPolicy: "annotations" | "read-only";
}

export interface AuthConfiguration {
  readonly tokens: readonly AuthToken[];
}

export interface AuthToken {
  readonly tenant: string;
  /** Of the token, in hexadecimal. The token itself is in no file. */
  readonly sha256: string;
  /** May see what all tenants' sandboxes do (`/ops`). A single tenant always may. */
  readonly operator?: boolean | undefined;
}

/** `sluice serve`. */
export interface ServeConfiguration {
  /** What clients reach it by where something stands before it, as a proxy with TLS: `https://sluice.example`. */
  readonly publicUrl?: string | undefined;
  /** Names that the server may be reached by besides addresses and localhost; a request for another is refused. */
  readonly allowedHosts: readonly string[];
  /** Turns that run at once: of all clients, and of one. More wait in line, in the order in which they came. */
  readonly maxTurns: number;
  readonly maxTurnsPerClient: number;
  /** Turns of one client that may wait; the next is told to come back later. */
  readonly maxQueuedPerClient: number;
  readonly queueDeadlineMs: number;
  /** How long turns that run may go on when the server is told to stop. */
  readonly drainMs: number;
  readonly uploadBytes: number;
  readonly retention: RetentionConfiguration;
}

export interface RetentionConfiguration {
  /** Conversations that were not used for so long are removed. */
  readonly days: number;
  /** Of one tenant; when it has more, its oldest conversations are removed. */
  readonly maxBytes: number;
}

/** Where one value came from. */
export type Origin =
  | { readonly from: "default" }
  | { readonly from: "file" }
  /** `written` is the text of the file, where the variables are referred to in one. */
  | { readonly from: "environment"; readonly variables: readonly string[]; readonly written?: string | undefined };

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The file that was read; null when there is none. */
  readonly path: string | null;
  /** By path, as `limits.sandbox.cellTimeoutMs` or `mcpServers.market.args[0]`; one entry for every single value of the configuration. */
  readonly origins: Readonly<Record<string, Origin>>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

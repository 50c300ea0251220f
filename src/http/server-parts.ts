import type { Configured } from "../configured/open-configured.ts";
import type { Tables, UploadStore } from "../data/contract.ts";
import type { History } from "../history/contract.ts";
import type { McpEndpoint } from "../mcp/server/create-mcp-endpoint.ts";
import type { SelfTest } from "../protocol/http-operations.ts";
import type { Authenticator } from "./auth/create-authenticator.ts";
import type { Conversations } from "./conversations/create-conversations.ts";
import type { WorkGate } from "./guard/create-work-gate.ts";
import type { Log } from "./log/create-log.ts";
import type { Metrics } from "./metrics/create-metrics.ts";
import type { TenantStores } from "./stores/create-tenant-stores.ts";
import type { TurnGate } from "./turns/create-turn-gate.ts";
import type { Turns } from "./turns/create-turns.ts";

/** What the routes work with. Made once, by `openServer`. */
export interface ServerParts {
  readonly configured: Configured;
  readonly model: ServedModel;
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly tables: Tables;
  readonly uploads: UploadStore;
  readonly conversations: Conversations;
  readonly gate: TurnGate;
  readonly work: WorkGate;
  readonly turns: Turns;
  readonly authenticator: Authenticator;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly mcp: McpEndpoint;
  readonly version: string;
  readonly startedAt: string;
  /** Of this server, as printed: `http://127.0.0.1:8787`, or what it is reached by. */
  readonly url: string;
  /** What it was told that clients reach it by; null where nothing stands between. */
  readonly publicUrl: string | null;
  readonly samples: readonly { readonly title: string; readonly question: string }[];
  /** The last one that was asked for. */
  selfTest: SelfTest | null;
}

/** The model that answers, or why there is none. */
export interface ServedModel {
  readonly name: string | null;
  readonly problem: string | null;
  open(): Promise<Awaited<ReturnType<Configured["openModel"]>>>;
}

import type { ArtifactStore } from "../../artifacts/artifact-store.ts";
import type { Configured } from "../../config/open-configured.ts";
import type { DataFiles } from "../../data/conversation-data.ts";
import type { Tables } from "../../data/tables/create-tables.ts";
import type { ProbeSink } from "../../protocol/probe.ts";

/** What all connections of a process share. The owner of the parts closes them, after the connections. */
export interface McpParts extends Pick<Configured, "configuration" | "runtime" | "catalog" | "policy" | "identities" | "artifacts"> {
  /** Reads tables for `list_data` and `read_data`. */
  readonly tables: Tables;
  /** The files given with `--data`, available on every connection. */
  readonly files?: DataFiles | undefined;
  /** A tenant's own artifact store. Default: all tenants share `artifacts`. */
  readonly storesOf?: ((tenant: string) => { readonly artifacts: ArtifactStore }) | undefined;
  readonly onProbe?: ProbeSink | undefined;
  /** HTML file of the app that draws charts in MCP hosts. Default: the one built into the package. */
  readonly chartAppFile?: string | undefined;
  readonly lifetimes?: Partial<ConnectionLifetimes> | undefined;
  /** Default: `setTimeout` with a timer that does not keep the process alive. */
  readonly after?: Schedule | undefined;
}

/** The sender of a request, known from its token. */
export interface McpCaller {
  readonly tenant: string;
  /**
   * Whom the token stands for: the `sub` of verified claims, or a name from a list of tokens. If neither is known, a hash of the token, so that another
   * token is taken for another subject. When it changes on a connection, the evidence, the Python state and the identity context of the earlier one are gone.
   */
  readonly subject?: string | null | undefined;
}

/** Runs `work` after a delay. Returns a function that cancels it. */
export type Schedule = (ms: number, work: () => void) => () => void;

export const afterTimeout: Schedule = (ms, work) => {
  const timer = setTimeout(work, ms).unref();
  return () => clearTimeout(timer);
};

/** How long idle connections and their sandboxes are kept, and how much data they may hold. */
export interface ConnectionLifetimes {
  /** A sandbox without a call for this long is freed, with its variables and files. Aliases stay. */
  readonly sandboxIdleMs: number;
  /** A connection without a call for this long is closed, with all of its data. Does not apply to stdio. */
  readonly connectionIdleMs: number;
  /** When an HTTP client disconnects before its answer arrives, its sandbox is freed unless the client returns within this time. */
  readonly disconnectGraceMs: number;
  /** A sandbox that has run no cell for this long is freed when another call waits for one. */
  readonly reclaimAfterMs: number;
  /** Per tenant. When there are more, the least recently used connection is closed. */
  readonly maxConnections: number;
  /** Data of all connections of one tenant. When there is more, the least recently used connection is closed. */
  readonly maxBytes: number;
  /** Data of one connection. */
  readonly connectionBytes: number;
}

export const defaultLifetimes: ConnectionLifetimes = {
  sandboxIdleMs: 15 * 60_000,
  connectionIdleMs: 60 * 60_000,
  disconnectGraceMs: 30_000,
  reclaimAfterMs: 10_000,
  maxConnections: 1_000,
  maxBytes: 1024 ** 3,
  connectionBytes: 512 * 1024 ** 2,
};

import type { ArtifactStore } from "../../artifacts/stored-artifact.ts";
import type { Configured } from "../../config/open-configured.ts";
import type { DataFiles, Tables } from "../../data/conversation-data.ts";
import type { ProbeSink } from "../../protocol/probe.ts";
import type { CallToolResult, ReadResourceResult, Resource, ResourceTemplateType, Tool } from "@modelcontextprotocol/server";

/** What every session of a process shares. Whoever made the parts closes them, after the sessions. */
export interface McpParts extends Pick<Configured, "configuration" | "runtime" | "catalog" | "policy" | "identities" | "artifacts"> {
  /** Looks into large data for `list_data` and `read_data`. */
  readonly tables: Tables;
  /** What `--data` gave, for every session. */
  readonly files?: DataFiles | undefined;
  /** Where a tenant's artifacts are kept, if not all in `artifacts`. */
  readonly storesOf?: ((tenant: string) => { readonly artifacts: ArtifactStore }) | undefined;
  readonly onProbe?: ProbeSink | undefined;
  /** The program that draws charts in hosts that can show it. That of the package unless told. */
  readonly chartAppFile?: string | undefined;
  readonly lifetimes?: Partial<ConnectionLifetimes> | undefined;
  /** Does the work when the time has come; gives what calls it off. A timer that keeps no process alive unless told. */
  readonly after?: Schedule | undefined;
}

export type Schedule = (ms: number, work: () => void) => () => void;

export const afterTimeout: Schedule = (ms, work) => {
  const timer = setTimeout(work, ms).unref();
  return () => clearTimeout(timer);
};

/** How long, and how much of it, what nobody uses is kept. */
export interface ConnectionLifetimes {
  /** Without a call, the sandbox goes: variables and files of its cells with it. Aliases stay. */
  readonly sandboxIdleMs: number;
  /** Without a call, the session goes with all of its data. Not on stdio, where it lives as long as its client. */
  readonly sessionIdleMs: number;
  /** A client over HTTP that closed the connection before it had its answer, and does not come back, gives up its sandbox. */
  readonly vanishedMs: number;
  /** A sandbox that has run nothing for this long is given up when somebody waits for one. */
  readonly spareMs: number;
  /** Of one tenant. Past it the longest unused goes. */
  readonly maxConnections: number;
  /** What all sessions of one tenant may keep. Past it the longest unused goes. */
  readonly maxBytes: number;
  /** What one session may keep. */
  readonly sessionBytes: number;
}

export const defaultLifetimes: ConnectionLifetimes = {
  sandboxIdleMs: 15 * 60_000,
  sessionIdleMs: 60 * 60_000,
  vanishedMs: 30_000,
  spareMs: 10_000,
  maxConnections: 1_000,
  maxBytes: 1024 ** 3,
  sessionBytes: 512 * 1024 ** 2,
};

/**
 * What one client is shown: tools, resources and how to use them. `createMcpServer` speaks the protocol over it, on every transport and for every
 * version; nothing below a surface knows of either.
 */
export interface Surface {
  readonly instructions: string;
  tools(signal: AbortSignal): Promise<readonly ServedTool[]>;
  /** Null when there is none of this name and nothing to say about it. */
  tool(name: string, signal: AbortSignal): Promise<ServedTool | null>;
  readonly resources: ServedResources;
}

/** A tool as it is published. The schema is held against a call by the tool itself, so that a client that breaks it reads an envelope. */
export interface ServedTool {
  readonly listing: Tool;
  /** Rejects with `signal.reason` only; what else goes wrong is a result that says `isError`. */
  call(args: Readonly<Record<string, unknown>>, context: CallContext): Promise<CallToolResult>;
}

export interface CallContext {
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

/** What a client that asked for it hears while a call runs. */
export interface Progress {
  /** The latest word. It is sent now or with the next beat; of many in a short time only the last is. */
  say(message: string): void;
}

export interface ServedResources {
  list(cursor: string | undefined): Promise<{ readonly resources: readonly Resource[]; readonly nextCursor?: string }>;
  readonly templates: readonly ResourceTemplateType[];
  /** Null when there is no such resource. Throws SluiceError when there is one that cannot be read. */
  read(uri: string, signal: AbortSignal): Promise<ReadResourceResult | null>;
}

import type { CallToolResult, ReadResourceResult, Resource, ResourceTemplateType, Tool } from "@modelcontextprotocol/server";

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

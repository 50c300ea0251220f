import type { CallToolResult, ReadResourceResult, Resource, ResourceTemplateType, Tool } from "@modelcontextprotocol/server";
import type { ApproveCall } from "../../tools/tool-policy.ts";

/** What one client can use: instructions, tools and resources, independent of the transport and the version of the protocol. */
export interface Surface {
  readonly instructions: string;
  tools(signal: AbortSignal): Promise<readonly ServedTool[]>;
  /** Null when no tool has this name. */
  tool(name: string, signal: AbortSignal): Promise<ServedTool | null>;
  readonly resources: ServedResources;
}

/** A tool as clients see it. The tool validates its own input, so that a client that breaks the schema gets a tool error. */
export interface ServedTool {
  readonly listing: Tool;
  /** Rejects only with `signal.reason`; every other failure is a result with `isError`. */
  call(args: Readonly<Record<string, unknown>>, context: McpCallContext): Promise<CallToolResult>;
}

export interface McpCallContext {
  readonly signal: AbortSignal;
  readonly progress: ProgressReporter;
  /** Asks the client's user to approve a call. Undefined if the client cannot ask. */
  readonly approve?: ApproveCall | undefined;
}

/** Sends progress of a running call to a client that asked for it. */
export interface ProgressReporter {
  /** Sends the message now or with the next regular notification. Of several in a short time, only the last is sent. */
  report(message: string): void;
}

export interface ServedResources {
  list(cursor: string | undefined): Promise<{ readonly resources: readonly Resource[]; readonly nextCursor?: string }>;
  readonly templates: readonly ResourceTemplateType[];
  /** Null when there is no such resource. Throws SluiceError when it exists and cannot be read. */
  read(uri: string, signal: AbortSignal): Promise<ReadResourceResult | null>;
}

/**
 * A tool that a model or its script can call: of an MCP server, or a local function.
 *
 * It can always be called as `server__tool`, and as `tool` alone if that name is unique and not reserved. Every call goes through `callBackendTool`, which
 * checks name, credentials, policy and schema. Nothing else calls `BackendTool.call`.
 */
export interface BackendTool {
  /** The name that its server gives it. */
  readonly name: string;
  /** The configured name of its server; `local` for local functions. */
  readonly server: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema | undefined;
  readonly annotations: ToolAnnotations;
  /** A function of this process. Without annotations it needs no approval, because this program chose it. */
  readonly isLocal?: boolean | undefined;
  readonly tags: readonly string[];
  /** Rejects when there is no answer. An answer with `isError` does not reject; `callBackendTool` turns it into a failure. */
  call(args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<ToolAnswer>;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}

export const DEFAULT_CALL_TIMEOUT_MS = 60_000;

export interface ToolCallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?:
    | ((progress: { readonly progress: number; readonly total?: number | undefined; readonly message?: string | undefined }) => void)
    | undefined;
  /** Added by the identity context: headers for an HTTP backend, `_meta` for an MCP call. Scripts never see them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** What a backend returned, with the fields of a `ToolOutput`: `EvidenceStore.keep` takes it as it is. */
export interface ToolAnswer {
  readonly output: unknown;
  readonly as: "mcp" | "value";
  /** The exact text of `structuredContent`, if the transport still has it. */
  readonly structuredJson?: string | undefined;
  /** A large answer that a worker thread has already read for evidence. `output` then has only the small fields, and the texts of an error. */
  readonly read?: object | undefined;
}

/** An MCP server or a set of local functions. Its tools can change over time, for example when a server goes down. */
export interface ToolSource extends AsyncDisposable {
  readonly name: string;
  /** Lists the current tools; connects on first use. Returns a gap instead of rejecting when the source cannot be reached. */
  tools(signal?: AbortSignal): ToolListing | Promise<ToolListing>;
}

export interface ToolListing {
  readonly tools: readonly BackendTool[];
  /** Why tools are missing, as a sentence for a person; null when none are. */
  readonly gap: { readonly server: string; readonly reason: string } | null;
}

/**
 * Backend tools: what a model, or a script of its, may call. They come from MCP servers and from local functions, and look the same here.
 *
 * A tool is always reachable as `server__tool`, and as `tool` alone where that name is unique and not one of our own. Every call goes the same way,
 * whoever makes it: name, credentials, policy, schema, then the backend (`callBackendTool`). Nothing else calls `BackendTool.call`.
 */
export interface BackendTool {
  /** Its own name, as its server says it. */
  readonly name: string;
  /** The configured name of its server; `local` for functions. */
  readonly server: string;
  readonly title?: string | undefined;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema | undefined;
  readonly annotations: ToolAnnotations;
  readonly tags: readonly string[];
  /** Rejects when there is no answer. An answer that says `isError` is one; `callBackendTool` tells it from a value. */
  call(args: Readonly<Record<string, unknown>>, options: ToolCallOptions): Promise<ToolAnswer>;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}

/** How long a backend may take to answer one call, unless it is given. */
export const DEFAULT_CALL_TIMEOUT_MS = 60_000;

export interface ToolCallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?:
    | ((progress: { readonly progress: number; readonly total?: number | undefined; readonly message?: string | undefined }) => void)
    | undefined;
  /** What the session adds: headers of an HTTP backend, `_meta` of an MCP call. A script never sees either. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

/** In the form in which evidence keeps it (`EvidenceStore.add`). */
export interface ToolAnswer {
  readonly output: unknown;
  readonly as: "mcp" | "value";
  /** The text of `structuredContent`, from a transport that still has it. */
  readonly structuredJson?: string | undefined;
  /** Of a large answer: what a thread has read of it, for evidence to keep. `output` has only what is left beside it, or the words of an error. */
  readonly read?: object | undefined;
}

/** Where tools come from. What it offers can change while it lives: a server goes down, and comes back. */
export interface ToolSource extends AsyncDisposable {
  readonly name: string;
  /** What is there now, at once where it is known; connects on first use. A source that cannot be reached gives a gap, and never rejects for it. */
  tools(signal?: AbortSignal): ToolListing | Promise<ToolListing>;
}

export interface ToolListing {
  readonly tools: readonly BackendTool[];
  /** Why some are missing, in words for a person; null when the source is well. */
  readonly gap: { readonly server: string; readonly reason: string } | null;
}

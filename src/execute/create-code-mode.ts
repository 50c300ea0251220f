import { z } from "zod";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { describeTools, listTags } from "../tools/describe-tool.ts";
import { createToolSearch } from "../tools/search-tools.ts";
import { defineTool, type Tool, type ToolCallResult } from "../tools/tool.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import type { EngineSetting } from "./choose-engine.ts";
import { defaultExecuteLimits, defaultExecuteSettings, type Engine, type ExecuteLimits } from "./engine.ts";
import { describeExecute } from "../prompts/describe-execute.ts";
import { createInvokeTool, envelopeContractTool } from "./invoke-tool.ts";
import { runExecute, toExecuteJson } from "./run-execute.ts";
import type { ScriptWatch } from "./script-watch.ts";
import type { IdentityContext } from "./identity/identity-context.ts";
import { identityTools } from "./identity/identity-tools.ts";

export interface CodeModeTool extends Tool<CodeModeRunOptions> {
  run(input: unknown, options?: CodeModeRunOptions): Promise<ToolCallResult>;
}

export interface CodeModeRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Of `execute`: who looks at the calls of the script. */
  readonly watch?: ScriptWatch | undefined;
}

/** The request of a conversation that a call belongs to. */
export interface CodeModeContext extends CodeModeRunOptions {
  readonly evidence: EvidenceStore;
  /** Without it there are no tools for identity, region and profile. */
  readonly identity?: IdentityContext | undefined;
}

export interface CodeModeToolsOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly engines: { readonly monty: Engine; readonly cpython?: Engine | undefined };
  readonly engine?: EngineSetting | undefined;
  readonly limits?: Partial<ExecuteLimits> | undefined;
  readonly toolTimeoutMs?: number | undefined;
  /** Whether every call has a session. */
  readonly hasIdentity: boolean;
}

export interface CodeModeOptions extends Omit<CodeModeToolsOptions, "hasIdentity">, Pick<CodeModeContext, "evidence" | "identity"> {}

/** The tools of `createCodeModeTools`, for one request of one conversation. */
export function createCodeMode({ evidence, identity, ...options }: CodeModeOptions): readonly CodeModeTool[] {
  const tools = createCodeModeTools({ ...options, hasIdentity: identity !== undefined });
  return tools.map((tool) => ({ ...tool, run: (input, call = {}) => tool.run(input, { ...call, evidence, identity }) }));
}

/** Results up to this size are in the answer of `execute` whole. */
const SHOWN_BYTES = 64 * 1024;

const readOnly = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;
const detail = z.enum(["brief", "detailed", "full"]).optional();

/** `execute`, the tools that find what it can call, and those of the session: made once for all conversations over a catalog. */
export function createCodeModeTools(options: CodeModeToolsOptions): readonly Tool<CodeModeContext>[] {
  const { catalog, policy, engines, engine = defaultExecuteSettings.engine, hasIdentity } = options;
  const asked = { ...defaultExecuteLimits, ...options.limits };
  // No more run at once than the catalog lets through, and the description should not say so.
  const limits = { ...asked, concurrentToolCalls: Math.min(asked.concurrentToolCalls, catalog.slots.places) };
  const invoke = createInvokeTool({ catalog, policy, timeoutMs: options.toolTimeoutMs });
  const found = createToolSearch(catalog);
  return [
    defineTool({
      name: "search",
      title: "Search tools",
      description: "Find backend tools by what they do, the best first. Says how many of all are listed. An empty query lists them.",
      input: z.strictObject({
        query: z.string().optional().describe("Words: what the tool should do, or its name."),
        tags: z.array(z.string()).optional().describe("Only tools that have all of these; see tags."),
        detail: detail.describe("brief (default): one sentence each; detailed: Python signatures; full: JSON Schemas."),
        limit: z.int().min(1).max(50).optional().describe("10 unless told."),
      }),
      annotations: readOnly,
      run: async (request, { signal }: CodeModeContext) => said(await found.search({ ...request, policy, signal })),
    }),
    defineTool({
      name: "get_schema",
      title: "Get schemas of tools",
      description: "How backend tools are called and what they give: compact Python signatures, or JSON Schema.",
      input: z.strictObject({
        tools: z
          .union([z.string(), z.array(z.string()).min(1).max(50)], { error: "must be the name of a tool, or a list of 1 to 50 names" })
          .describe("Names of tools."),
        detail: detail.describe("brief: what it does; detailed (default): Python signatures; full: JSON Schemas."),
      }),
      annotations: readOnly,
      run: async (request, { signal }: CodeModeContext) => said(await describeTools({ catalog, ...request, policy, signal })),
    }),
    defineTool({
      name: "tags",
      title: "List tags of tools",
      description: "Tags of the backend tools, with how many tools have each.",
      input: z.strictObject({}),
      annotations: readOnly,
      run: async (_, { signal }: CodeModeContext) => said(await listTags({ catalog, signal })),
    }),
    defineTool({
      name: "execute",
      title: "Execute a script with tools",
      description: describeExecute({ limits, engine, hasCpython: engines.cpython !== undefined, hasIdentity }),
      input: z.strictObject({ code: z.string().describe("Async Python; `return` or a final expression is the result.") }),
      // What it may do is what the tools may do that it calls, and those are judged one by one.
      annotations: { destructiveHint: false, idempotentHint: false, openWorldHint: true },
      async run({ code }, { evidence, ...context }: CodeModeContext) {
        const answer = await runExecute({ code, engines, engine, limits, invoke, evidence, ...context });
        const { status, error = null, resultAlias } = answer;
        const aliases = [...(resultAlias === undefined ? [] : [resultAlias]), ...answer.aliases.map(({ alias }) => alias)];
        const cutAliases = aliases.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > SHOWN_BYTES);
        return { status, text: toExecuteJson(answer), error, aliases, cutAliases };
      },
    }),
    envelopeContractTool,
    ...(hasIdentity ? identityTools : []).map((tool) => ({
      ...tool,
      run: (input: unknown, { identity }: CodeModeContext) => tool.run(input, { identity: identity! }),
    })),
  ];
}

function said(value: object): ToolCallResult {
  return { status: "ok", text: JSON.stringify(value), error: null };
}

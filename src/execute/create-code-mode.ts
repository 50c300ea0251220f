import { z } from "zod";
import type { EvidenceStore } from "../evidence/evidence-store.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { describeTools, listTags, toolDetails } from "../tools/describe-tool.ts";
import { searchTools } from "../tools/search-tools.ts";
import { defineTool, readOnlyAnnotations, type Tool, type ToolCallResult } from "../tools/tool.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import type { EngineSetting } from "./choose-engine.ts";
import { defaultExecuteLimits, defaultExecuteSettings, type Engine, type ExecuteLimits } from "./engine.ts";
import { codeModeDescriptions, codeModeParameters } from "../prompts/code-mode-tools.ts";
import { describeExecute } from "../prompts/describe-execute.ts";
import { createInvokeTool, envelopeContractTool } from "./invoke-tool.ts";
import { runExecute, toExecuteJson } from "./run-execute.ts";
import type { ScriptWatch } from "./create-script-tools.ts";
import type { IdentityContext } from "./identity/identity-context.ts";
import { identityTools, type IdentityToolContext } from "./identity/identity-tools.ts";

export interface CodeModeTool extends Tool<CodeModeRunOptions> {
  run(input: unknown, options?: CodeModeRunOptions): Promise<ToolCallResult>;
}

interface CodeModeRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Observes and admits the tool calls of an `execute` script. */
  readonly watch?: ScriptWatch | undefined;
  /** Replaces the policy that all calls share, for a caller that can be asked for approval. */
  readonly policy?: ToolPolicy | undefined;
}

/** The conversation and identity that a call belongs to. */
export interface CodeModeContext extends CodeModeRunOptions {
  readonly evidence: EvidenceStore;
  /** Required if the tools were created with `hasIdentity`. */
  readonly identity?: IdentityContext | undefined;
}

export interface CodeModeToolsOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly engines: { readonly monty: Engine; readonly cpython?: Engine | undefined };
  readonly engine?: EngineSetting | undefined;
  readonly limits?: Partial<ExecuteLimits> | undefined;
  readonly toolTimeoutMs?: number | undefined;
  /** Adds the identity tools. Every call must then pass an identity context. */
  readonly hasIdentity: boolean;
}

export interface CodeModeOptions extends Omit<CodeModeToolsOptions, "hasIdentity">, Pick<CodeModeContext, "evidence" | "identity"> {}

/** The tools of `createCodeModeTools`, bound to one conversation and identity. */
export function createCodeMode({ evidence, identity, ...options }: CodeModeOptions): readonly CodeModeTool[] {
  const tools = createCodeModeTools({ ...options, hasIdentity: identity !== undefined });
  return tools.map((tool) => ({ ...tool, run: (input, call = {}) => tool.run(input, { ...call, evidence, identity }) }));
}

/** `execute`, the tools that find backend tools, and the identity tools. Created once per catalog and shared by all conversations. */
export function createCodeModeTools(options: CodeModeToolsOptions): readonly Tool<CodeModeContext>[] {
  const identityTool = (tool: Tool<IdentityToolContext>): Tool<CodeModeContext> => ({
    ...tool,
    run: (input, { identity }) => tool.run(input, { identity: identity! }),
  });
  return [
    ...createDiscoveryTools(options),
    createExecuteTool(options),
    envelopeContractTool,
    ...(options.hasIdentity ? identityTools.map(identityTool) : []),
  ];
}

function createDiscoveryTools({ catalog, policy }: CodeModeToolsOptions): Tool<CodeModeContext>[] {
  const detail = z.enum(toolDetails).optional();
  const { search, get_schema } = codeModeParameters;
  return [
    defineTool({
      name: "search",
      title: "Search tools",
      description: codeModeDescriptions.search,
      input: z.strictObject({
        query: z.string().optional().describe(search.query),
        tags: z.array(z.string()).optional().describe(search.tags),
        detail: detail.describe(search.detail),
        limit: z.int().min(1).max(50).optional().describe(search.limit),
      }),
      annotations: readOnlyAnnotations,
      run: async (request, { signal, policy: own = policy }: CodeModeContext) =>
        toResult(await searchTools({ catalog, ...request, policy: own, signal })),
    }),
    defineTool({
      name: "get_schema",
      title: "Get schemas of tools",
      description: codeModeDescriptions.get_schema,
      input: z.strictObject({
        tools: z
          .union([z.string(), z.array(z.string()).min(1).max(50)], { error: "must be the name of a tool, or a list of 1 to 50 names" })
          .describe(get_schema.tools),
        detail: detail.describe(get_schema.detail),
      }),
      annotations: readOnlyAnnotations,
      run: async (request, { signal, policy: own = policy }: CodeModeContext) =>
        toResult(await describeTools({ catalog, ...request, policy: own, signal })),
    }),
    defineTool({
      name: "tags",
      title: "List tags of tools",
      description: codeModeDescriptions.tags,
      input: z.strictObject({}),
      annotations: readOnlyAnnotations,
      run: async (_, { signal }: CodeModeContext) => toResult(await listTags({ catalog, signal })),
    }),
  ];
}

function toResult(value: object): ToolCallResult {
  return { status: "ok", text: JSON.stringify(value), error: null };
}

/** Aliases of larger outputs are reported as cut, so that MCP clients get links to them. */
const LINKED_BYTES = 64 * 1024;

function createExecuteTool(options: CodeModeToolsOptions): Tool<CodeModeContext> {
  const { catalog, policy, engines, engine = defaultExecuteSettings.engine, hasIdentity } = options;
  const requested = { ...defaultExecuteLimits, ...options.limits };
  // The catalog runs no more calls at once than it has slots, so the description must not promise more.
  const limits = { ...requested, concurrentToolCalls: Math.min(requested.concurrentToolCalls, catalog.slots.places) };
  const invoke = createInvokeTool({ catalog, policy, timeoutMs: options.toolTimeoutMs });
  return defineTool({
    name: "execute",
    title: "Execute a script with tools",
    description: describeExecute({ limits, engine, hasCpython: engines.cpython !== undefined, hasIdentity }),
    input: z.strictObject({ code: z.string().describe(codeModeParameters.execute.code) }),
    // Each tool call of the script is checked against the policy, so `execute` does not need approval.
    annotations: { destructiveHint: false, idempotentHint: false, openWorldHint: true },
    async run({ code }, { evidence, ...context }: CodeModeContext) {
      const answer = await runExecute({ code, engines, engine, limits, invoke, evidence, ...context });
      const { status, error = null, resultAlias } = answer;
      const aliases = [...(resultAlias === undefined ? [] : [resultAlias]), ...answer.aliases.map(({ alias }) => alias)];
      const cutAliases = aliases.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > LINKED_BYTES);
      return { status, text: toExecuteJson(answer), error, aliases, cutAliases };
    },
  });
}

import { getEnvelopeContract } from "../errors/error-table.ts";
import type { EvidenceStore } from "../evidence/contract.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { describeTools, listTags, type ToolDetail } from "../tools/describe-tool.ts";
import { checkToolInput } from "../tools/check-tool-input.ts";
import { createToolSearch, type SearchRequest } from "../tools/search-tools.ts";
import { toErrorResult, type Tool, type ToolCallResult } from "../tools/tool.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import type { EngineSetting } from "./choose-engine.ts";
import { codeModeSchemas } from "./code-mode-schemas.ts";
import { defaultExecuteLimits, defaultExecuteSettings, type Engine, type ExecuteLimits } from "./contract.ts";
import { describeExecute } from "./describe-execute.ts";
import { createInvokeTool } from "./invoke-tool.ts";
import { runExecute, toExecuteJson } from "./run-execute.ts";
import type { ScriptWatch } from "./script-watch.ts";
import type { SessionContext } from "./session/contract.ts";
import { sessionTools } from "./session/session-tools.ts";

export interface CodeModeTool extends Tool<CodeModeRunOptions> {
  run(input: unknown, options?: CodeModeRunOptions): Promise<ToolCallResult>;
}

export interface CodeModeRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Of `execute`: who looks at the calls of the script. */
  readonly watch?: ScriptWatch | undefined;
}

export interface CodeModeOptions {
  readonly catalog: ToolCatalog;
  readonly policy: ToolPolicy;
  readonly evidence: EvidenceStore;
  readonly engines: { readonly monty: Engine; readonly cpython?: Engine | undefined };
  readonly engine?: EngineSetting | undefined;
  readonly limits?: Partial<ExecuteLimits> | undefined;
  /** Without it there are no tools for identity, region and profile. */
  readonly session?: SessionContext | undefined;
  readonly toolTimeoutMs?: number | undefined;
}

/** Results up to this size are in the answer of `execute` whole. */
const SHOWN_BYTES = 64 * 1024;

type Answer = (args: Readonly<Record<string, unknown>>, options: CodeModeRunOptions) => Promise<ToolCallResult>;

/** `execute`, the tools that find what it can call, and those of the session: for one request of one conversation. */
export function createCodeMode(options: CodeModeOptions): readonly CodeModeTool[] {
  const { catalog, policy, evidence, engines, engine = defaultExecuteSettings.engine, session } = options;
  const asked = { ...defaultExecuteLimits, ...options.limits };
  // No more run at once than the catalog lets through, and the description should not say so.
  const limits = { ...asked, concurrentToolCalls: Math.min(asked.concurrentToolCalls, catalog.slots.places) };
  const invoke = createInvokeTool({ catalog, policy, timeoutMs: options.toolTimeoutMs });
  const found = createToolSearch(catalog);
  const hasCpython = engines.cpython !== undefined;

  const answers: Readonly<Record<string, Answer>> = {
    search: async (args, { signal }) => said(await found.search({ ...(args as SearchRequest), policy, signal })),
    get_schema: async (args, { signal }) =>
      said(await describeTools({ catalog, ...(args as { tools: string | string[]; detail?: ToolDetail }), policy, signal })),
    tags: async (_, { signal }) => said(await listTags({ catalog, signal })),
    execute: async ({ code }, { signal, watch }) => {
      const answer = await runExecute({ code: code as string, engines, engine, limits, evidence, invoke, session, watch, signal });
      const { status, error = null, resultAlias } = answer;
      const aliases = [...(resultAlias === undefined ? [] : [resultAlias]), ...answer.aliases.map(({ alias }) => alias)];
      const cutAliases = aliases.filter((alias) => (evidence.get(alias)?.bytes ?? 0) > SHOWN_BYTES);
      return { status, text: toExecuteJson(answer), error, aliases, cutAliases };
    },
    get_envelope_contract: async () => said(getEnvelopeContract()),
  };

  const own = codeModeSchemas.map((schema) => ({
    ...schema,
    description:
      schema.name === "execute" ? describeExecute({ limits, engine, hasCpython, hasSession: session !== undefined }) : schema.description,
    answer: answers[schema.name]!,
  }));
  const ofSession = (session === undefined ? [] : sessionTools).map(({ run, ...tool }) => ({
    ...tool,
    answer: async (args: Readonly<Record<string, unknown>>): Promise<ToolCallResult> => {
      const answer = run(session!, args);
      return answer.ok ? said(answer.value) : toErrorResult(answer.envelope);
    },
  }));
  return [...own, ...ofSession].map(({ answer, ...tool }) => ({ ...tool, run: checked(tool, answer) }));
}

/** Checks each call against the published schema, so that a client that breaks it gets an envelope. */
function checked({ name, inputSchema }: Pick<CodeModeTool, "name" | "inputSchema">, answer: Answer): CodeModeTool["run"] {
  return async (input, options = {}) => {
    const verdict = checkToolInput({ name, schema: inputSchema, args: input });
    return verdict.ok ? await answer(verdict.args, options) : toErrorResult(verdict.envelope);
  };
}

function said(value: object): ToolCallResult {
  return { status: "ok", text: JSON.stringify(value), error: null };
}

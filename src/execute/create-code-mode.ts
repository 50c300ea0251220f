import { getEnvelopeContract } from "../errors/get-envelope-contract.ts";
import type { Envelope } from "../errors/envelope.ts";
import type { ForeignEnvelope } from "../errors/foreign-envelope.ts";
import type { EvidenceStore } from "../evidence/contract.ts";
import type { ToolAnnotations } from "../tools/contract.ts";
import type { ToolCatalog } from "../tools/create-tool-catalog.ts";
import { describeTools, type ToolDetail } from "../tools/describe-tool.ts";
import { listTags } from "../tools/list-tags.ts";
import { createToolSearch } from "../tools/search-tools.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";
import type { EngineSetting } from "./choose-engine.ts";
import { codeModeSchemas } from "./code-mode-schemas.ts";
import { defaultExecuteLimits, type Engine, type ExecuteLimits } from "./contract.ts";
import { describeExecute } from "./description/describe-execute.ts";
import { createInvokeTool } from "./invoke-tool.ts";
import { ownTools } from "./own-tools.ts";
import { runExecute, toExecuteJson } from "./run-execute.ts";
import type { ScriptWatch } from "./script-watch.ts";
import type { SessionContext } from "./session/contract.ts";
import { sessionTools } from "./session/session-tools.ts";

/** A tool of our own as any way in publishes it: to a model, over MCP, on a page. */
export interface CodeModeTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations: ToolAnnotations;
  /** Never throws for what the caller sent: that is an answer with an envelope. Rejects with `signal.reason`. */
  run(input: unknown, options?: CodeModeRunOptions): Promise<CodeModeAnswer>;
}

export interface CodeModeRunOptions {
  readonly signal?: AbortSignal | undefined;
  /** Of `execute`: who looks at the calls of the script. */
  readonly watch?: ScriptWatch | undefined;
}

/** `json` is what a model reads; when it failed, `envelope` is in it. `refused`: nothing was run. */
export interface CodeModeAnswer {
  readonly status: "ok" | "error" | "refused";
  readonly json: string;
  readonly envelope: Envelope | ForeignEnvelope | null;
  /** What a script kept: its result where that is too long to be read at once, then what it fetched. */
  readonly aliases: readonly string[];
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

type Answer = (args: Readonly<Record<string, unknown>>, options: CodeModeRunOptions) => Promise<CodeModeAnswer>;

/** `execute`, the tools that find what it can call, and those of the session: for one request of one conversation. */
export function createCodeMode(options: CodeModeOptions): readonly CodeModeTool[] {
  const { catalog, policy, evidence, engines, engine = "auto", session } = options;
  const asked = { ...defaultExecuteLimits, ...options.limits };
  // No more run at once than the catalog lets through, and the description should not say so.
  const limits = { ...asked, concurrentToolCalls: Math.min(asked.concurrentToolCalls, catalog.slots.max) };
  const invoke = createInvokeTool({ catalog, policy, session, timeoutMs: options.toolTimeoutMs });
  const found = createToolSearch(catalog);
  const hasCpython = engines.cpython !== undefined;

  const answers: Readonly<Record<string, Answer>> = {
    search: async ({ query, tags, detail, limit }, { signal }) =>
      said(
        await found.search({
          query: query as string | undefined,
          tags: tags as string[] | undefined,
          detail: detail as ToolDetail | undefined,
          limit: limit as number | undefined,
          policy,
          signal,
        }),
      ),
    get_schema: async ({ tools, detail }, { signal }) =>
      said(await describeTools({ catalog, tools: tools as string | string[], detail: detail as ToolDetail | undefined, policy, signal })),
    tags: async (_, { signal }) => said(await listTags({ catalog, signal })),
    execute: async ({ code }, { signal, watch }) => {
      const answer = await runExecute({ code: code as string, engines, engine, limits, evidence, invoke, watch, signal });
      const { status, error = null, resultAlias } = answer;
      const aliases = [...(resultAlias === undefined ? [] : [resultAlias]), ...answer.aliases.map(({ alias }) => alias)];
      return { status, json: toExecuteJson(answer), envelope: error, aliases };
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
    title: toTitle(tool.name),
    answer: async (args: Readonly<Record<string, unknown>>): Promise<CodeModeAnswer> => {
      const answer = run(session!, args);
      return answer.ok ? said(answer.value) : refused(answer.envelope);
    },
  }));
  return [...own, ...ofSession].map(({ answer, ...tool }) => ({ ...tool, run: checked(tool.name, answer, catalog) }));
}

/** The published schema is held against the call by us, so that a client that breaks it gets an envelope. */
function checked(name: string, answer: Answer, catalog: ToolCatalog): CodeModeTool["run"] {
  const own = ownTools.get(name)!;
  return async (input, options = {}) => {
    const verdict = await catalog.inputs.check({ tool: own, args: input });
    return verdict.ok ? await answer(verdict.args, options) : refused(verdict.envelope);
  };
}

function said(value: object): CodeModeAnswer {
  return { status: "ok", json: JSON.stringify(value), envelope: null, aliases: [] };
}

function refused(envelope: Envelope): CodeModeAnswer {
  return { status: "refused", json: JSON.stringify({ status: "refused", error: envelope }), envelope, aliases: [] };
}

function toTitle(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

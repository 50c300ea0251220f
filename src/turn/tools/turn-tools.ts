import { dynamicTool, jsonSchema, type ToolSet } from "ai";
import { z } from "zod";
import { createToolError, type ToolError } from "../../errors/tool-error.ts";
import type { EvidenceItem } from "../../evidence/evidence-store.ts";
import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import { runBackendTool, toToolError, type BackendToolCall } from "../../execute/run-backend-tool.ts";
import type { ScriptCallEnd, ScriptWatch } from "../../execute/create-script-tools.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { CatalogTool, ToolList } from "../../tools/create-tool-catalog.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { ToolPolicy } from "../../tools/tool-policy.ts";
import type { TurnParts } from "../turn-request.ts";
import { describeError } from "../describe-error.ts";
import type { Call, CallEnd } from "../ledger.ts";
import { toAborted, toFailedCall, toFailure, type CallResult, type OpenCall, type TurnCalls } from "../steps/turn-calls.ts";
import { createOwnTools, toTurnTool, type OwnToolsOptions, type TurnTool } from "./own-tools.ts";

/** From here on the model gets discovery and one dispatcher instead of every schema. */
const MAX_TOOL_SCHEMAS = 40;

/** What a call of the model is a call of. */
export interface CallTarget extends Omit<Call, "callId" | "within"> {
  /** Null when there is no such tool now. */
  readonly run: ((call: OpenCall) => Promise<CallResult>) | null;
}

export interface TurnToolsOptions extends OwnToolsOptions, Pick<TurnParts, "request" | "runtime" | "budgets"> {
  readonly calls: TurnCalls;
}

/** Everything that the model can call, as it is in the current step: a server that comes back has its tools again in the next one. */
export class TurnTools {
  readonly #options: TurnToolsOptions;
  readonly #own: readonly TurnTool[];
  readonly #policy: ToolPolicy;
  readonly #codeMode: readonly CodeModeTool[];
  /** The server of every tool that was there in some step, by each of its names. */
  readonly #owners = new Map<string, string>();
  #list: ToolList = noTools;
  #tools: ReadonlyMap<string, TurnTool> = new Map();
  /** For the model, without `execute`: the loop runs the calls. */
  schemas: ToolSet = {};

  constructor(options: TurnToolsOptions) {
    const { catalog, identity, toolTimeoutMs, codeMode } = options.request;
    const { evidence } = options.conversation;
    this.#options = options;
    this.#own = createOwnTools(options);
    this.#policy = options.calls.policyFor("");
    this.#codeMode = options.runtime.createCodeMode({ catalog, policy: this.#policy, evidence, identity, toolTimeoutMs, ...codeMode });
  }

  async refresh(): Promise<void> {
    const list = await this.#readList();
    if (list === this.#list && this.#tools.size > 0) return;
    this.#list = list;
    for (const { name, fullName, bareName, tool } of list.tools)
      for (const known of [name, fullName, bareName ?? name]) this.#owners.set(known, tool.server);
    // The catalog never gives away a name of ours.
    this.#tools = new Map([...this.#backendTools(), ...this.#own].map((tool) => [tool.name, tool]));
    this.schemas = Object.fromEntries([...this.#tools].map(([name, tool]) => [name, toSchema(tool)]));
  }

  find({ tool: name, input }: Pick<Call, "tool" | "input">): CallTarget {
    const skill = name === "call_mcp_skill" && this.#tools.has(name) ? callMcpSkillSchema.safeParse(input).data : undefined;
    if (skill !== undefined) {
      const tool = this.#findTool(skill.tool)?.name ?? skill.tool;
      const run = (call: OpenCall): Promise<CallResult> => this.#runBackend({ name: tool, args: skill.arguments }, call);
      return { tool, server: this.#serverOf(skill.tool), input: skill.arguments, run };
    }
    const tool = this.#tools.get(name);
    const run = tool === undefined ? null : (call: OpenCall): Promise<CallResult> => tool.run(input, call);
    return { tool: name, server: this.#serverOf(name), intent: intentOf(input), input, run };
  }

  /** Why a tool cannot be called in this step. */
  whyMissing(tool: string, reason?: string): ToolError {
    const away = this.#list.gaps.find(({ server }) => server === this.#serverOf(tool));
    if (away !== undefined) {
      const summary = `The server ${away.server} of the tool ${tool} cannot be used now: ${away.reason}`;
      return createToolError({ code: "UPSTREAM_UNREACHABLE", tool, summary });
    }
    const isPython = tool === "code_interpreter" || tool === "python_code_edit";
    const noPython = isPython ? this.#options.ledger.gaps.find(({ code }) => code === "sandbox_unavailable") : undefined;
    if (noPython !== undefined) return createToolError({ code: "SANDBOX_UNAVAILABLE", tool, summary: noPython.detail });
    const details = reason === undefined ? [] : [{ path: "", issue: reason, received_type: "string" }];
    return createToolError({ code: "TOOL_NOT_FOUND", tool, summary: `${tool} cannot be called in this step.`, details });
  }

  /** A server that is down is a gap, and not a crash; one that came back is none any more. The same for a catalog that cannot be read. */
  async #readList(): Promise<ToolList> {
    const { ledger, request, signal } = this.#options;
    try {
      const list = await request.catalog.list(signal);
      ledger.serverGaps = list.gaps.map(({ server, reason }): Gap => {
        return { code: "server_unavailable", severity: "minor", detail: `The server ${server} could not be used: ${reason}` };
      });
      return list;
    } catch (error) {
      const detail = `The list of tools could not be read: ${describeError(error)}`;
      if (!signal.aborted) ledger.serverGaps = [{ code: "tools_unavailable", severity: "major", detail }];
      return { ...noTools, gaps: this.#list.gaps }; // a server that was away is still known by name
    }
  }

  #backendTools(): TurnTool[] {
    const { signal } = this.#options;
    const usable = this.#list.tools.filter((tool) => this.#policy.judge(tool).verdict !== "refused");
    if (usable.length === 0) return [];
    const codeMode = this.#codeMode.map((tool) => toTurnTool(tool, ({ callId }) => ({ signal, watch: this.#watchScript(callId) })));
    if (usable.length > MAX_TOOL_SCHEMAS) return [toTurnTool(createDispatcher(this.#list.tools.length), () => {}), ...codeMode];
    const backend = usable.map(({ name, tool }): TurnTool => {
      const { title, inputSchema, annotations } = tool;
      const run = (args: unknown, call: OpenCall): Promise<CallResult> => this.#runBackend({ name, args }, call);
      return { name, title, description: tool.description || title || name, inputSchema, annotations, run };
    });
    return [...backend, ...codeMode];
  }

  async #runBackend({ name, args }: Pick<BackendToolCall, "name" | "args">, { callId, policy }: OpenCall): Promise<CallResult> {
    const { request, conversation, budgets, emit, signal } = this.#options;
    const { catalog, identity, toolTimeoutMs: timeoutMs } = request;
    const { evidence } = conversation;
    const result = await runBackendTool({
      ...{ catalog, identity, evidence, policy, name, timeoutMs, signal },
      args: args ?? {},
      onProgress: ({ progress, total, message }) => emit({ type: "tool-progress", callId, tool: name, progress, total, message }),
    });
    if (!result.ok) {
      const failed = toFailedCall(result.status, toToolError(name, result.failure));
      return result.failure.kind === "plain" ? { ...failed, failure: { ...failed.failure!, kind: null } } : failed;
    }
    const { item, aliases, warnings } = result;
    const previews = aliases.map((alias) => evidence.preview(alias, { maxBytes: budgets.previewBytes }).json);
    const texts = [...previews, ...warnings.map((warning) => JSON.stringify({ warning }))];
    return { status: "ok", text: texts.join("\n"), previews: aliases, aliases, isEmpty: isEmpty(item) };
  }

  /** The calls of a script are calls of the turn: admitted, recorded and told to listeners like the model's own. */
  #watchScript(within: string): ScriptWatch {
    const { calls } = this.#options;
    let count = 0;
    return {
      policy: calls.policyFor(within),
      begin: ({ name, args }) => {
        count += 1;
        const tool = this.#findTool(name)?.name ?? name;
        const call = calls.begin({ callId: `${within}/${count}`, tool, server: this.#serverOf(name), input: args, within });
        return { admit: call.admit, end: (end) => call.end(this.#toScriptCallEnd(end)) };
      },
    };
  }

  #toScriptCallEnd(end: ScriptCallEnd): CallEnd {
    if (end.status === "aborted") return toAborted("the script was ended");
    if (end.status === "ok") {
      const item = this.#options.conversation.evidence.get(end.aliases[0] ?? "");
      return { status: "ok", aliases: end.aliases, isEmpty: item !== null && isEmpty(item) };
    }
    const { status, failure } = end;
    if (failure.kind === "toolError") return { status, failure: toFailure(failure.toolError) };
    return { status, failure: { kind: null, code: "TOOL_EXECUTION_ERROR", reason: `${failure.type}: ${failure.message}` } };
  }

  /** A tool by any of its names; null when there is none now. */
  #findTool(name: string): CatalogTool | null {
    return this.#list.tools.find(({ name: shown, fullName, bareName }) => [shown, fullName, bareName].includes(name)) ?? null;
  }

  /** Whose tool it is, also while its server is away: it was there in an earlier step, or the name says whose it is. */
  #serverOf(name: string): string | undefined {
    return this.#owners.get(name) ?? this.#list.gaps.find(({ server }) => name.startsWith(`${server}__`))?.server;
  }
}

const noTools: ToolList = { tools: [], gaps: [], warnings: [] };

const callMcpSkillSchema = z.strictObject({
  tool: z.string().min(1).describe("The name of the tool, as search and get_schema give it."),
  arguments: z.record(z.string(), z.unknown()).default({}).describe("What the tool takes, as its schema says."),
});

/** What runs is the tool that the call names, see `find`. Only a call that breaks the schema gets here. */
function createDispatcher(count: number): Tool<void> {
  return defineTool({
    name: "call_mcp_skill",
    description: `Call one of ${count} backend tools by name. search finds them by what they do, get_schema says how each is called.`,
    input: callMcpSkillSchema,
    annotations: {},
    refusal: {
      lead: "Nothing was called",
      code: "SCHEMA_VALIDATION_FAILED",
      examples: [{ tool: "get_price", arguments: { symbol: "A" } }],
    },
    run: ({ tool }) => Promise.reject(new Error(`${tool} was not called.`)),
  });
}

/** Calls are checked by the tools, so that one that breaks the schema gets an envelope. */
function toSchema({ description, inputSchema }: TurnTool): ToolSet[string] {
  return dynamicTool({ description, inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]) });
}

/** What a cell is for, as its contract says. */
function intentOf(input: unknown): string | undefined {
  const contract = (input as { postProcessingContract?: { reason?: unknown } } | null)?.postProcessingContract;
  return typeof contract?.reason === "string" ? contract.reason.slice(0, 300) : undefined;
}

/** Nothing in it: no rows, no text, null, `{}`. */
function isEmpty({ shape, bytes, attachments, read, format }: EvidenceItem): boolean {
  if (attachments.length > 0) return false;
  if (shape.rows !== null) return shape.rows === 0;
  if (bytes > 64 || (format !== "json" && format !== "text")) return bytes === 0;
  return ["", "null", "{}", '""'].includes(new TextDecoder().decode(read()).trim());
}

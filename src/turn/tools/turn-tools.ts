import { dynamicTool, jsonSchema, type ToolSet } from "ai";
import { z } from "zod";
import { createToolError, type ToolError } from "../../errors/tool-error.ts";
import type { EvidenceItem } from "../../evidence/evidence-store.ts";
import type { CodeModeTool } from "../../execute/create-code-mode.ts";
import { runBackendTool, toToolError, type BackendToolCall } from "../../execute/run-backend-tool.ts";
import type { ScriptCallEnd, ScriptWatch } from "../../execute/create-script-tools.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import { turnToolDescriptions } from "../../prompts/turn-prompts.ts";
import { ellipsize } from "../../text/clip-text.ts";
import type { CatalogTool, ToolList } from "../../tools/create-tool-catalog.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import type { ToolPolicy } from "../../tools/tool-policy.ts";
import type { TurnParts } from "../turn-request.ts";
import { describeError } from "../describe-error.ts";
import type { Call, CallEnd } from "../ledger.ts";
import { toAborted, toFailedCall, toFailure, type CallResult, type OpenCall, type TurnCalls } from "../steps/turn-calls.ts";
import { createOwnTools, toTurnTool, type OwnToolsOptions, type TurnTool } from "./own-tools.ts";

/** With more backend tools, the model gets search and the dispatcher `call_mcp_skill` instead of all schemas. */
const MAX_TOOL_SCHEMAS = 40;

/** A server may report progress thousands of times a second, each time with a long message. Every report is stored and replaces the one before. */
const PROGRESS_EVERY_MS = 100;
const PROGRESS_CHARACTERS = 500;

/** The tool that a call of the model addresses. */
export interface CallTarget extends Omit<Call, "callId" | "within"> {
  /** Null when the tool is not available now. */
  readonly run: ((call: OpenCall) => Promise<CallResult>) | null;
}

export interface TurnToolsOptions extends OwnToolsOptions, Pick<TurnParts, "request" | "runtime" | "budgets"> {
  readonly calls: TurnCalls;
}

/** Everything that the model can call in the current step. The list is read again for each step, because servers come and go. */
export class TurnTools {
  readonly #options: TurnToolsOptions;
  readonly #ownTools: readonly TurnTool[];
  /** Decides which tools are listed. Each call has a policy of its own, which names the call in approval requests. */
  readonly #policy: ToolPolicy;
  readonly #codeMode: readonly CodeModeTool[];
  /** The server of every tool that was available in any step, by each of its names. */
  readonly #servers = new Map<string, string>();
  #list: ToolList = noTools;
  #tools: ReadonlyMap<string, TurnTool> = new Map();
  /** AI SDK tools without `execute`: the steps run the calls. */
  schemas: ToolSet = {};

  constructor(options: TurnToolsOptions) {
    const { catalog, identity, toolTimeoutMs, codeMode } = options.request;
    const { evidence } = options.conversation;
    this.#options = options;
    this.#ownTools = createOwnTools(options);
    this.#policy = options.calls.policyFor("");
    this.#codeMode = options.runtime.createCodeMode({ catalog, policy: this.#policy, evidence, identity, toolTimeoutMs, ...codeMode });
  }

  async refresh(): Promise<void> {
    const list = await this.#readList();
    if (list === this.#list && this.#tools.size > 0) return;
    this.#list = list;
    for (const { name, fullName, bareName, tool } of list.tools)
      for (const anyName of [name, fullName, bareName ?? name]) this.#servers.set(anyName, tool.server);
    // No backend tool has the name of an own tool: the catalog reserves them.
    this.#tools = new Map([...this.#backendTools(), ...this.#ownTools].map((tool) => [tool.name, tool]));
    this.schemas = Object.fromEntries([...this.#tools].map(([name, tool]) => [name, toSchema(tool)]));
  }

  /** For `call_mcp_skill`, returns the backend tool that the call names. */
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

  /** The error for a call to a tool that is not available in this step. */
  whyMissing(tool: string, reason?: string): ToolError {
    const unavailable = this.#list.gaps.find(({ server }) => server === this.#serverOf(tool));
    if (unavailable !== undefined) {
      const summary = `The server ${unavailable.server} of the tool ${tool} is not available: ${unavailable.reason}`;
      return createToolError({ code: "UPSTREAM_UNREACHABLE", tool, summary });
    }
    const isPython = tool === "code_interpreter" || tool === "python_code_edit";
    const noPython = isPython ? this.#options.ledger.gaps.find(({ code }) => code === "sandbox_unavailable") : undefined;
    if (noPython !== undefined) return createToolError({ code: "SANDBOX_UNAVAILABLE", tool, summary: noPython.detail });
    const details = reason === undefined ? [] : [{ path: "", issue: reason, received_type: "string" }];
    return createToolError({ code: "TOOL_NOT_FOUND", tool, summary: `${tool} is not available in this step.`, details });
  }

  /** Reports unavailable servers, or an unreadable catalog, as gaps. The gaps of the previous step are replaced. */
  async #readList(): Promise<ToolList> {
    const { ledger, request, signal } = this.#options;
    try {
      const list = await request.catalog.list(signal);
      ledger.serverGaps = list.gaps.map(({ server, reason }): Gap => {
        return { code: "server_unavailable", severity: "minor", detail: `The server ${server} is not available: ${reason}` };
      });
      return list;
    } catch (error) {
      const detail = `The tool list could not be read: ${describeError(error)}`;
      if (!signal.aborted) ledger.serverGaps = [{ code: "tools_unavailable", severity: "major", detail }];
      return { ...noTools, gaps: this.#list.gaps }; // still recognizes the servers that were unavailable
    }
  }

  #backendTools(): TurnTool[] {
    const { signal } = this.#options;
    const usable = this.#list.tools.filter((tool) => {
      const judgement = this.#policy.judge(tool);
      return judgement.verdict !== "refused" || !judgement.isHidden;
    });
    if (usable.length === 0) return [];
    const codeMode = this.#codeMode.map((tool) =>
      toTurnTool(tool, ({ callId, policy }) => ({ signal, policy, watch: this.#watchScript(callId) })),
    );
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
      onProgress: limitReports(({ progress, total, message }) =>
        emit({ type: "tool-progress", callId, tool: name, progress, total, message: message && ellipsize(message, PROGRESS_CHARACTERS) }),
      ),
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

  /** Makes the calls of a script calls of the turn: admitted, recorded and emitted like those of the model. */
  #watchScript(within: string): ScriptWatch {
    const { calls } = this.#options;
    let count = 0;
    return {
      request: ({ name, args }) => {
        count += 1;
        const tool = this.#findTool(name)?.name ?? name;
        const call = calls.request({ callId: `${within}/${count}`, tool, server: this.#serverOf(name), input: args, within });
        return { admit: call.admit, end: (end) => call.end(this.#toScriptCallEnd(end)) };
      },
    };
  }

  #toScriptCallEnd(end: ScriptCallEnd): CallEnd {
    if (end.status === "aborted") return toAborted("the script was stopped");
    if (end.status === "ok") {
      const item = this.#options.conversation.evidence.get(end.aliases[0] ?? "");
      return { status: "ok", aliases: end.aliases, isEmpty: item !== null && isEmpty(item) };
    }
    const { status, failure } = end;
    if (failure.kind === "toolError") return { status, failure: toFailure(failure.toolError) };
    return { status, failure: { kind: null, code: "TOOL_EXECUTION_ERROR", reason: `${failure.type}: ${failure.message}` } };
  }

  #findTool(name: string): CatalogTool | null {
    return this.#list.tools.find((tool) => [tool.name, tool.fullName, tool.bareName].includes(name)) ?? null;
  }

  /** The server of a tool, even while it is unavailable: known from an earlier step, or from the prefix of the name. */
  #serverOf(name: string): string | undefined {
    return this.#servers.get(name) ?? this.#list.gaps.find(({ server }) => name.startsWith(`${server}__`))?.server;
  }
}

const noTools: ToolList = { tools: [], gaps: [], warnings: [] };

const callMcpSkillSchema = z.strictObject({
  tool: z.string().min(1).describe(turnToolDescriptions.skillTool),
  arguments: z.record(z.string(), z.unknown()).default({}).describe(turnToolDescriptions.skillArguments),
});

/** Publishes the schema and refuses invalid calls. Valid calls never reach `run`: `find` returns the tool that they name. */
function createDispatcher(toolCount: number): Tool<void> {
  return defineTool({
    name: "call_mcp_skill",
    description: turnToolDescriptions.call_mcp_skill(toolCount),
    input: callMcpSkillSchema,
    annotations: {},
    refusal: {
      lead: "No tool was called",
      code: "SCHEMA_VALIDATION_FAILED",
      examples: [{ tool: "get_price", arguments: { symbol: "A" } }],
    },
    run: ({ tool }) => Promise.reject(new Error(`${tool} was not called.`)),
  });
}

/** Has no validation: the tools validate their input themselves, so that an invalid call gets a tool error. */
function toSchema({ description, inputSchema }: TurnTool): ToolSet[string] {
  return dynamicTool({ description, inputSchema: jsonSchema(inputSchema as Parameters<typeof jsonSchema>[0]) });
}

/** The reason that the call contract of a cell gives. */
function intentOf(input: unknown): string | undefined {
  const callContract = (input as { postProcessingContract?: { reason?: unknown } } | null)?.postProcessingContract;
  return typeof callContract?.reason === "string" ? callContract.reason.slice(0, 300) : undefined;
}

/** Whether an output has no data: no rows, no text, null, `{}`. */
function isEmpty({ shape, bytes, attachments, read, format }: EvidenceItem): boolean {
  if (attachments.length > 0) return false;
  if (shape.rows !== null) return shape.rows === 0;
  if (bytes > 64 || (format !== "json" && format !== "text")) return bytes === 0;
  return ["", "null", "{}", '""'].includes(new TextDecoder().decode(read()).trim());
}

/** Passes on a report only when the last one that it passed on is old enough. */
function limitReports<Report>(pass: (report: Report) => void): (report: Report) => void {
  let nextAt = 0;
  return (report) => {
    const now = performance.now();
    if (now < nextAt) return;
    nextAt = now + PROGRESS_EVERY_MS;
    pass(report);
  };
}

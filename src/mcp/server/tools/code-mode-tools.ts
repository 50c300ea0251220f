import type { Tool } from "@modelcontextprotocol/server";
import { codeModeSchemas } from "../../../execute/code-mode-schemas.ts";
import type { CodeModeTool } from "../../../execute/create-code-mode.ts";
import { summarizeExecute } from "../../../execute/description/summarize-execute.ts";
import { sessionTools } from "../../../execute/session/session-tools.ts";
import { isRecord } from "../../../errors/is-record.ts";
import type { McpParts } from "../mcp-parts.ts";
import type { ToolReply } from "../results/to-call-result.ts";
import { outputSchemas } from "./output-schemas.ts";
import { linksTo, type SluiceCall, type SluiceTool } from "./sluice-tool.ts";

/** Results up to this size are in the answer of `execute` whole. */
const SHOWN_RESULT_BYTES = 64 * 1024;

/** `execute`, the tools that find what it can call, and those of the session. */
export function createCodeModeTools(parts: McpParts): readonly SluiceTool[] {
  const { engine } = parts.configuration.execute;
  return [...codeModeSchemas, ...sessionTools].map(({ name, inputSchema, annotations, ...own }) => {
    const title = "title" in own ? own.title : toTitle(name);
    const listing: Tool = {
      name,
      title,
      description: name === "execute" ? summarizeExecute(engine) : own.description,
      inputSchema: inputSchema as Tool["inputSchema"],
      outputSchema: outputSchemas[name]!,
      annotations: { title, ...defined(annotations) },
    };
    return { listing, run: (call) => runOne(parts, name, call) };
  });
}

async function runOne(parts: McpParts, name: string, call: SluiceCall): Promise<ToolReply> {
  const { evidence } = call.entered.session;
  const answer = await toolOf(parts, name, call).run(call.args, { signal: call.signal });
  return {
    json: answer.json,
    isError: answer.envelope !== null,
    links: name === "execute" ? linksTo(call, evidence, keptBy(answer.json), SHOWN_RESULT_BYTES) : [],
  };
}

function toolOf(parts: McpParts, name: string, { entered }: SluiceCall): CodeModeTool {
  const { runtime, catalog, policy, configuration } = parts;
  const tools = runtime.createCodeMode({
    catalog,
    policy,
    evidence: entered.session.evidence,
    session: entered.state,
    engine: configuration.execute.engine,
    limits: configuration.limits.execute,
    toolTimeoutMs: configuration.limits.mcp.timeoutMs,
  });
  return tools.find((tool) => tool.name === name)!;
}

/** The aliases that a script's answer names. */
function keptBy(json: string): string[] {
  const { resultAlias, aliases } = JSON.parse(json) as { resultAlias?: unknown; aliases?: unknown };
  const kept = Array.isArray(aliases) ? aliases.flatMap((one) => (isRecord(one) ? [one["alias"]] : [])) : [];
  return [resultAlias, ...kept].filter((alias) => typeof alias === "string");
}

function toTitle(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function defined(annotations: CodeModeTool["annotations"]): NonNullable<Tool["annotations"]> {
  return Object.fromEntries(Object.entries(annotations).filter(([, value]) => value !== undefined));
}

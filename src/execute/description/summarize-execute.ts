import type { EngineSetting } from "../choose-engine.ts";

/** Where the whole description can be read by clients of MCP. */
export const executeGuideUri = "sluice://docs/execute";

/** What a model needs of `execute` where every word is paid for by people who may never use it. The rest is `describeExecute`; errors and warnings say it again where it matters. */
export function summarizeExecute(engine: EngineSetting): string {
  return [
    "Run async Python with backend tools: await call_tool(name, params), asyncio.gather for several at once; find them with search. Return what you need to decide: every tool result is kept whole under an alias that the answer lists, for code_interpreter.",
    "A failing tool raises RuntimeError; its text is the error envelope as JSON.",
    interpreterOf(engine),
  ].join(" ");
}

function interpreterOf(engine: EngineSetting): string {
  if (engine === "cpython") return "CPython with its standard library, no network.";
  const rest = engine === "auto" ? "; what it plainly cannot take runs in CPython" : "";
  return `A small Python without classes, network or most modules${rest}. Details: ${executeGuideUri}.`;
}

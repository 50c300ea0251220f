import type { EngineSetting } from "../choose-engine.ts";

/** Where the whole description can be read by clients of MCP. */
export const executeGuideUri = "sluice://docs/execute";

/** What a model needs of `execute` where every word is paid for by people who may never use it. The rest is `describeExecute`; errors and warnings say it again where it matters. */
export function summarizeExecute(engine: EngineSetting): string {
  return [
    "Run async Python with backend tools in scope: await call_tool(name, params), several at once with asyncio.gather; return what you need to decide. Find tools with search and get_schema.",
    "Every tool result is kept whole under an alias that the answer lists, for code_interpreter: do not copy data. A failing tool raises RuntimeError; its text is the v1 error envelope as JSON.",
    ...interpreterOf(engine),
  ].join("\n");
}

function interpreterOf(engine: EngineSetting): string[] {
  if (engine === "cpython") return ["CPython with its standard library, no network."];
  const rest = engine === "auto" ? "; what it plainly cannot take runs in CPython" : "";
  return [`A small Python without classes, network or most modules${rest}. Its limits and differences: resource ${executeGuideUri}.`];
}

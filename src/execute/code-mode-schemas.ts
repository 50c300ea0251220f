import type { CodeModeTool } from "./create-code-mode.ts";

const readOnly = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;
const detail = { type: "string", enum: ["brief", "detailed", "full"] } as const;

/** What the tools of code mode look like from outside. The description of `execute` is made where its limits are known. */
export const codeModeSchemas: readonly Omit<CodeModeTool, "run">[] = [
  {
    name: "search",
    title: "Search tools",
    description: "Find backend tools by what they do, the best first. Says how many of all are listed. An empty query lists them.",
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words: what the tool should do, or its name." },
        tags: { type: "array", items: { type: "string" }, description: "Only tools that have all of these; see tags." },
        detail: { ...detail, description: "brief (default): one sentence each; detailed: Python signatures; full: JSON Schemas." },
        limit: { type: "integer", minimum: 1, maximum: 50, description: "10 unless told." },
      },
      additionalProperties: false,
    },
    annotations: readOnly,
  },
  {
    name: "get_schema",
    title: "Get schemas of tools",
    description: "How backend tools are called and what they give: compact Python signatures, or JSON Schema.",
    inputSchema: {
      type: "object",
      properties: {
        tools: {
          anyOf: [{ type: "string" }, { type: "array", items: { type: "string" }, minItems: 1, maxItems: 50 }],
          description: "Names of tools.",
        },
        detail: { ...detail, description: "brief: what it does; detailed (default): Python signatures; full: JSON Schemas." },
      },
      required: ["tools"],
      additionalProperties: false,
    },
    annotations: readOnly,
  },
  {
    name: "tags",
    title: "List tags of tools",
    description: "Tags of the backend tools, with how many tools have each.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    annotations: readOnly,
  },
  {
    name: "execute",
    title: "Execute a script with tools",
    description: "",
    inputSchema: {
      type: "object",
      properties: { code: { type: "string", description: "Async Python; `return` or a final expression is the result." } },
      required: ["code"],
      additionalProperties: false,
    },
    // What it may do is what the tools may do that it calls, and those are judged one by one.
    annotations: { destructiveHint: false, idempotentHint: false, openWorldHint: true },
  },
  {
    name: "get_envelope_contract",
    title: "Get the contract of errors",
    description: "Every kind and code of the v1 error envelope, what each means and whether a retry helps.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    annotations: readOnly,
  },
];

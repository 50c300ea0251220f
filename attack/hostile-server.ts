/** A stdio MCP server that lies. Each call of `get_lies` with `n` gets another answer, generated from the seed in the arguments. */
import { createInterface } from "node:readline";
import { mutateValues } from "./fuzz/mutate.ts";

const MB = 1024 * 1024;
const nested = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);
const lies = { type: "object", properties: { how: { type: "string" }, seed: { type: "integer" }, n: { type: "integer" } } };
const annotations = { readOnlyHint: true };
const tools = [
  { name: "get_lies", description: "Lies.", inputSchema: lies, annotations },
  {
    name: "get_deep_schema",
    description: "Has a deep schema.",
    inputSchema: { type: "object", properties: { a: nested(2_000) } },
    annotations,
  },
  {
    name: "get_wide_schema",
    description: "Has a wide schema.",
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`p${at}`, { type: "string" }])),
    },
    annotations,
  },
  {
    name: "get_slow_pattern",
    description: "Its schema has a pattern that backtracks.",
    inputSchema: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } },
    annotations,
  },
  { name: "x".repeat(5_000), description: "y".repeat(MB), inputSchema: { type: "object" }, annotations },
];

const write = (message: unknown): boolean => process.stdout.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line) as { id?: number; method: string; params?: { name?: string; arguments?: Lie } };
  if (id === undefined) return;
  const answer = (result: unknown): boolean => write({ jsonrpc: "2.0", id, result });
  if (method === "initialize")
    return answer({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "0" } });
  if (method === "tools/list") return answer({ tools });
  if (method !== "tools/call") return write({ jsonrpc: "2.0", id, error: { code: -32601, message: `Method not found: ${method}` } });
  return lie(id, params?.arguments ?? {}, answer);
});

interface Lie {
  readonly how?: string;
  readonly seed?: number;
  readonly n?: number;
}

function lie(id: number, { how = "fuzz", seed = 1, n = 0 }: Lie, answer: (result: unknown) => boolean): boolean {
  const text = (value: string): boolean => answer({ content: [{ type: "text", text: value }] });
  switch (how) {
    case "flood":
      for (let at = 0; at < 20_000; at += 1)
        write({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: id, progress: at, message: "x".repeat(200) } });
      return text("[1]");
    case "strangers": // answers without a request
      for (let at = 0; at < 5_000; at += 1) write({ jsonrpc: "2.0", id: 1e6 + at, result: {} });
      return text("[1]");
    case "deep":
      return text(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    case "deep structure":
      return answer({ content: [], structuredContent: nested(3_000) });
    case "many parts":
      return answer({ content: Array.from({ length: 50_000 }, () => ({ type: "text", text: "1" })) });
    case "wide":
      return text(JSON.stringify([Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`key${at}`, at]))]));
    case "huge": // 80 MB
      return text(`["${"x".repeat(80 * MB)}"]`);
    case "garbage":
      write("this is not a message");
      return write(`{"jsonrpc":"2.0","id":${id},"result":${"[".repeat(50_000)}`);
    default: {
      const valid = [
        { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: '[{"a":1}]' }], structuredContent: { a: [1] }, isError: false } },
      ];
      write(mutateValues(valid, { seed: seed + n, count: 1 })[0]);
      return text("[1]"); // if that one was not an answer
    }
  }
}

import type { ToolOutput } from "./contract.ts";
import { isMcpResult } from "./mcp-result.ts";
import { fromValue, type OutputPart } from "./output-part.ts";
import { readMcpResult } from "./read-mcp-result.ts";
import { readText } from "./read-text.ts";

/** What one output is made of, the part that the alias stands for first. Never empty. */
export function readToolOutput({ output, as, structuredJson }: ToolOutput): [OutputPart, ...OutputPart[]] {
  if (as === "mcp" || (as === undefined && isMcpResult(output))) return readMcpResult(output as Record<string, unknown>, structuredJson);
  if (typeof output === "string") return [readText(output)];
  if (output instanceof Uint8Array) return [{ part: "bytes", format: "bytes", body: output }];
  return [fromValue(output)];
}

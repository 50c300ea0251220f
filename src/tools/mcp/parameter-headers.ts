import { isRecord } from "../../text/json.ts";
import type { JsonSchema } from "../backend-tool.ts";

/**
 * Headers that repeat arguments, for servers of 2026-07-28 that ask for it with `x-mcp-header` in a property of the input schema, so that proxies can
 * route by them. Such a server refuses a call without them.
 */
export function createParameterHeaders(schema: JsonSchema, args: Readonly<Record<string, unknown>>): Record<string, string> {
  const { properties } = schema;
  if (!isRecord(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) => {
      if (!isRecord(property)) return [];
      const [header, value] = [property["x-mcp-header"], args[name]];
      if (isRecord(value)) return Object.entries(createParameterHeaders(property, value));
      const text = toText(value);
      return typeof header === "string" && isToken.test(header) && text !== null ? [[`Mcp-Param-${header}`, toFieldValue(text)]] : [];
    }),
  );
}

const isToken = /^[!#$%&'*+.^_`|~\w-]+$/;

function toText(value: unknown): string | null {
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  return typeof value === "number" && isExact ? String(value) : null;
}

function toFieldValue(text: string): string {
  const isPlain = /^[\t\x20-\x7e]+$/.test(text) && text === text.trim() && !(text.startsWith("=?base64?") && text.endsWith("?="));
  return isPlain ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

import type { Alias } from "../../src/protocol/http-tables.ts";
import { texts } from "../texts.ts";
import { formatBytes } from "./format.ts";

/** Describes an alias: rows, size and source. */
export function describeAlias({ rows, bytes, tool }: Alias): string {
  return [...(rows === null ? [] : [texts.conversation.rows(rows)]), formatBytes(bytes), tool].join(" · ");
}

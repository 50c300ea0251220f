import type { Preview } from "../contract.ts";
import type { PreviewSource } from "./build-preview.ts";

export interface AliasList {
  readonly preview: Preview;
  readonly notListed: number;
}

/** One preview for many outputs: their aliases, as many of the newest as there is room for, and how to see the others. Aliases are ASCII and need no escapes. */
export function listAliases(sources: readonly PreviewSource[], maxBytes: number): AliasList {
  const aliases: string[] = [];
  let left = maxBytes - toJson(sources, []).length;
  for (const { item } of sources.toReversed()) {
    left -= item.alias.length + 3;
    if (left < 0) break;
    aliases.push(item.alias);
  }
  const json = toJson(sources, aliases.toReversed());
  return { preview: { alias: null, json, bytes: json.length, detail: "list" }, notListed: sources.length - aliases.length };
}

function toJson(sources: readonly PreviewSource[], aliases: readonly string[]): string {
  const notListed = sources.length - aliases.length;
  const whole = "No room for previews. All are whole in Python under their aliases";
  return JSON.stringify({
    outputs: sources.length,
    bytes: sources.reduce((sum, { item }) => sum + item.bytes, 0),
    aliases,
    ...(notListed > 0 ? { aliasesNotShown: notListed } : {}),
    note: notListed > 0 ? `${whole}; list(inputs) there names every one.` : `${whole}.`,
  });
}

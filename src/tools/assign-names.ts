import { hash } from "node:crypto";
import { quote } from "../errors/argument-path.ts";
import type { BackendTool } from "./backend-tool.ts";

/** A tool with the names under which it can be called. */
export interface CatalogTool {
  /** The name to show: the bare name if there is one, else the full name. */
  readonly name: string;
  /** `server__tool`, unique. At most 64 characters of `A-Za-z0-9_-`, as model APIs require. */
  readonly fullName: string;
  /** The name of the tool alone. Null when another tool has it, or when it is reserved, too long, or looks like a full name. */
  readonly bareName: string | null;
  readonly tool: BackendTool;
}

/** Names of Sluice's own tools. A backend tool with such a name can only be called as `server__tool`. */
export const reservedToolNames: ReadonlySet<string> = new Set([
  "code_interpreter",
  "python_code_edit",
  "render_chart",
  "execute",
  "search",
  "get_schema",
  "tags",
  "store_data",
  "list_data",
  "read_data",
  "call_mcp_skill",
  "final_response",
  "get_session_state",
  "set_active_identity",
  "set_region",
  "set_active_profile",
  "get_active_context",
  "get_envelope_contract",
]);

const MAX_LENGTH = 64;

/**
 * Gives every tool a unique full name, and a bare name where that is unambiguous. The names do not depend on the order of the tools, except when two tools
 * have the same server and name: then the later ones get a number. The warnings say which tools had to be renamed, and why.
 */
export function assignNames(
  tools: readonly BackendTool[],
  isBareNameTaken: (bareName: string) => boolean = () => false,
): { readonly tools: readonly CatalogTool[]; readonly warnings: readonly string[] } {
  const { fullNames, taken, warnings } = assignFullNames(tools);
  const bareCounts = countBy(tools.map(({ name }) => toSafeName(name)));
  return {
    warnings,
    tools: tools.map((tool, index) => {
      const fullName = fullNames[index]!;
      const bare = toSafeName(tool.name);
      const isUnique = bareCounts.get(bare) === 1 && !taken.has(bare) && !isBareNameTaken(bare);
      const bareName = isUnique && canBeBareName(bare) ? bare : null;
      return { name: bareName ?? fullName, fullName, bareName, tool };
    }),
  };
}

/** A name with `__` could be the full name of another tool, now or later. */
function canBeBareName(name: string): boolean {
  return name.length <= MAX_LENGTH && !name.includes("__") && !reservedToolNames.has(name);
}

/** Replaces every character that a tool name must not have by an underscore. */
export function toSafeName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/gu, "_") || "_";
}

/** `fullNames` are in the order of the tools; `taken` are the same names. */
function assignFullNames(tools: readonly BackendTool[]): { fullNames: string[]; taken: ReadonlySet<string>; warnings: string[] } {
  const wanted = tools.map(({ server, name }) => `${toSafeName(server)}__${toSafeName(name)}`);
  const counts = countBy(wanted);
  const canKeep = (name: string): boolean => counts.get(name) === 1 && name.length <= MAX_LENGTH;
  const taken = new Set(wanted.filter(canKeep)); // all of them first, so that no changed name takes one
  const warnings: string[] = [];
  const fullNames = tools.map((tool, index) => {
    const name = wanted[index]!;
    if (canKeep(name)) return name;
    const changed = firstFreeName(tool, name, taken);
    taken.add(changed);
    const reason = counts.get(name) === 1 ? `is longer than ${MAX_LENGTH} characters` : "is the name of more than one tool";
    warnings.push(`${quote(`${tool.server}__${tool.name}`)} ${reason}; this one is called ${changed}.`);
    return changed;
  });
  return { fullNames, taken, warnings };
}

/** Appends a digest of server and tool, and a number if that name is taken too. */
function firstFreeName(tool: BackendTool, wanted: string, taken: ReadonlySet<string>): string {
  const digest = hash("sha256", JSON.stringify([tool.server, tool.name])).slice(0, 6);
  let name = withSuffix(wanted, digest);
  for (let number = 2; taken.has(name); number += 1) name = withSuffix(wanted, `${digest}_${number}`);
  return name;
}

function withSuffix(name: string, suffix: string): string {
  return `${name.slice(0, MAX_LENGTH - suffix.length - 1)}_${suffix}`;
}

function countBy(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

import { toPathText } from "../errors/argument-path.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { toSafeName, type CatalogTool } from "./assign-names.ts";

export interface AllowListOptions {
  /** Tools of any server: `server__tool`, `tool`, or `server__*`. */
  readonly allow?: readonly string[] | undefined;
  /** The servers of the configuration. Each lists its own tools by name, or `*` for all. */
  readonly mcpServers?: Readonly<Record<string, { readonly allow?: readonly string[] | undefined }>> | undefined;
}

/** The tools that may change something and are called without approval. */
export interface AllowList {
  has(tool: CatalogTool): boolean;
  /** What the operator has to write so that the list has this tool, as a sentence. */
  describeEntry(tool: CatalogTool): string;
}

/** Throws UsageError for an invalid entry of `allow`. */
export function createAllowList({ allow = [], mcpServers = {} }: AllowListOptions): AllowList {
  const allowed = new Set(allow.map(checkEntry));
  const servers = new Map(Object.entries(mcpServers).map(([server, { allow: tools = [] }]) => [server, tools]));

  return {
    has({ tool: { server, name }, fullName, bareName }) {
      const own = servers.get(server) ?? [];
      if ([name, fullName, "*"].some((entry) => own.includes(entry))) return true;
      const bareNames = bareName === null ? [] : [bareName, name];
      return [fullName, `${server}__${name}`, `${server}__*`, `${toSafeName(server)}__*`, ...bareNames].some((entry) => allowed.has(entry));
    },
    describeEntry({ tool: { server, name }, fullName }) {
      const own = servers.get(server);
      if (own === undefined) return `To allow it, pass it to the tool policy: createToolPolicy({ allow: ${toJson([fullName])} }).`;
      // Repeats the entries that are there: a second "allow" in the same object would replace them.
      const entries = [...own, isPlainName(name) ? name : fullName];
      return `To allow it, set "allow": ${toJson(entries)} in ${toPathText(["mcpServers", server])} of sluice.config.json and start Sluice again; "allow": ["*"] allows all tools of this server.`;
    },
  };
}

function checkEntry(entry: string): string {
  const star = entry.indexOf("*");
  if (entry !== "" && (star === -1 || (entry.endsWith("__*") && star === entry.length - 1 && entry.length > 3))) return entry;
  throw new UsageError({ code: "ALLOW_LIST_INVALID", message: `The allow-list of tools has an invalid entry: ${JSON.stringify(entry)}.` });
}

/** Whether a name is a valid entry that a person can read and paste. Other tools are allowed by their full name. */
function isPlainName(name: string): boolean {
  return /^[\w./: -]{1,200}$/.test(name);
}

function toJson(names: readonly string[]): string {
  return JSON.stringify(names).replaceAll('","', '", "');
}

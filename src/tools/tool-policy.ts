import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { toSafeName, type CatalogTool } from "./assign-names.ts";
import { orAbort } from "../concurrency/or-abort.ts";

export interface ToolPolicyOptions {
  /** `read-only` demands `readOnlyHint` of every tool, and nothing makes an exception. */
  readonly toolPolicy?: "annotations" | "read-only";
  /** Tools that say that they change something and may be called: `server__tool`, `tool`, or `server__*`. */
  readonly allow?: readonly string[];
  /** Asks a person about a tool that is not on the list. Only a call that is otherwise in order is asked about. */
  readonly approve?: ApproveCall;
}

/** Asks a person about one call. Whoever does not say yes has said no; `because` is a sentence for the model and for the person. */
export type ApproveCall = (tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal) => Promise<boolean | Approval>;

export interface Approval {
  readonly approved: boolean;
  readonly because?: string | undefined;
}

export type PolicyVerdict =
  | { readonly verdict: "allowed" }
  | { readonly verdict: "ask" }
  | { readonly verdict: "refused"; readonly toolError: ToolError };

/** Which tools may be called. A tool's own annotations are what it is judged by: they are a claim of its server, not a proof. */
export interface ToolPolicy {
  /** `name` is what it was called by. */
  judge(tool: CatalogTool, name?: string): PolicyVerdict;
  /** For a verdict of `ask`. Null when the person agrees. */
  ask(tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<ToolError | null>;
  /** The same rules, with somebody else to ask. */
  approvedBy(approve: ApproveCall): ToolPolicy;
}

/** Throws UsageError for an entry of the list that could not mean what it says. */
export function createToolPolicy({ toolPolicy = "annotations", allow = [], approve }: ToolPolicyOptions = {}): ToolPolicy {
  const allowed = new Set(allow.map(checkEntry));

  function isAllowed({ tool, fullName, bareName }: CatalogTool): boolean {
    const { server, name } = tool;
    const names = [
      fullName,
      `${server}__${name}`,
      `${server}__*`,
      `${toSafeName(server)}__*`,
      ...(bareName === null ? [] : [bareName, name]),
    ];
    return names.some((one) => allowed.has(one));
  }

  return {
    judge(tool, name = tool.name) {
      const { readOnlyHint, destructiveHint } = tool.tool.annotations;
      if (toolPolicy === "read-only" && readOnlyHint !== true) return { verdict: "refused", toolError: notReadOnly(tool, name) };
      if ((destructiveHint !== true && readOnlyHint !== false) || isAllowed(tool)) return { verdict: "allowed" };
      if (approve !== undefined && toolPolicy !== "read-only") return { verdict: "ask" };
      return { verdict: "refused", toolError: notOnList(tool, name) };
    },
    async ask(tool, args, signal) {
      try {
        const said = approve === undefined ? false : await orAbort(approve(tool, args, signal), signal);
        const { approved, because } = typeof said === "boolean" ? { approved: said } : said;
        return approved ? null : notApproved(tool, because);
      } catch {
        signal?.throwIfAborted();
        return notApproved(tool);
      }
    },
    approvedBy: (other) => createToolPolicy({ toolPolicy, allow, approve: other }),
  };
}

function checkEntry(entry: string): string {
  const star = entry.indexOf("*");
  if (entry !== "" && (star === -1 || (entry.endsWith("__*") && star === entry.length - 1 && entry.length > 3))) return entry;
  throw new UsageError({ code: "ALLOW_LIST_INVALID", message: `The allow-list of tools has the entry ${JSON.stringify(entry)}.` });
}

function notReadOnly(tool: CatalogTool, name: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: `${name} may not be called: the policy is "read-only" and the tool ${tool.tool.annotations.readOnlyHint === false ? "says that it changes something" : "does not say that it only reads"}.`,
    hints: [
      "Use a tool whose readOnlyHint is true; get_schema shows it.",
      'Only who runs this server can change it: "toolPolicy" in the configuration.',
    ],
  });
}

function notOnList(tool: CatalogTool, name: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: `${name} may not be called: it ${claimOf(tool)}, and it is not on the allow-list.`,
    hints: [
      "Do without it, and tell the user what you would have changed.",
      `Only who runs this server can allow it: add "${tool.fullName}" (or "${toSafeName(tool.tool.server)}__*") to the allow-list in the configuration.`,
    ],
  });
}

function notApproved(tool: CatalogTool, because?: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: tool.name,
    summary: `${tool.name} was not called: it ${claimOf(tool)}, and this call was not approved${because === undefined ? "." : `: ${because}`}`,
    hints: ["Do not repeat the call. Do without it, and tell the user what you would have changed."],
  });
}

function claimOf({ tool }: CatalogTool): string {
  return tool.annotations.destructiveHint === true ? "says that it is destructive" : "says that it changes something";
}

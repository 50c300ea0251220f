import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { UsageError } from "../errors/sluice-error.ts";
import { toSafeName, type CatalogTool } from "./assign-names.ts";
import { orAbort } from "../concurrency/or-abort.ts";

export interface ToolPolicyOptions {
  /** `read-only` requires `readOnlyHint` of every tool, without exceptions. */
  readonly toolPolicy?: "annotations" | "read-only";
  /** Tools that change something and may be called: `server__tool`, `tool`, or `server__*`. */
  readonly allow?: readonly string[];
  /** Asks a person about a tool that is not on the list, after all other checks have passed. */
  readonly approve?: ApproveCall;
}

/** Asks a person about one call. Rejecting counts as "no"; `because` is a sentence for the model and the person. */
type ApproveCall = (tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal) => Promise<boolean | Approval>;

export interface Approval {
  readonly approved: boolean;
  readonly because?: string | undefined;
}

type PolicyVerdict = { readonly verdict: "allowed" | "ask" } | { readonly verdict: "refused"; readonly toolError: ToolError };

/** Decides which tools may be called, by their annotations. Annotations are claims of the server, not proof. */
export interface ToolPolicy {
  /**
   * A tool that says that it changes something (`destructiveHint: true` or `readOnlyHint: false`) must be on the allow-list, or a person is asked. Other
   * tools are allowed, even without annotations, unless the policy is `read-only`. `name` is the name by which the tool was called.
   */
  judge(tool: CatalogTool, name?: string): PolicyVerdict;
  /** For the verdict `ask`. Null when the person approves. */
  ask(tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<ToolError | null>;
  /** The same rules with another way to ask. */
  approvedBy(approve: ApproveCall): ToolPolicy;
}

/** Throws UsageError for an invalid entry of `allow`. */
export function createToolPolicy({ toolPolicy = "annotations", allow = [], approve }: ToolPolicyOptions = {}): ToolPolicy {
  const allowed = new Set(allow.map(checkAllowEntry));

  function isAllowed({ tool, fullName, bareName }: CatalogTool): boolean {
    const { server, name } = tool;
    const names = [
      fullName,
      `${server}__${name}`,
      `${server}__*`,
      `${toSafeName(server)}__*`,
      ...(bareName === null ? [] : [bareName, name]),
    ];
    return names.some((pattern) => allowed.has(pattern));
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
        const answer = approve === undefined ? false : await orAbort(approve(tool, args, signal), signal);
        const { approved, because } = typeof answer === "boolean" ? { approved: answer } : answer;
        return approved ? null : notApproved(tool, because);
      } catch {
        signal?.throwIfAborted();
        return notApproved(tool);
      }
    },
    approvedBy: (other) => createToolPolicy({ toolPolicy, allow, approve: other }),
  };
}

function checkAllowEntry(entry: string): string {
  const star = entry.indexOf("*");
  if (entry !== "" && (star === -1 || (entry.endsWith("__*") && star === entry.length - 1 && entry.length > 3))) return entry;
  throw new UsageError({ code: "ALLOW_LIST_INVALID", message: `The allow-list of tools has an invalid entry: ${JSON.stringify(entry)}.` });
}

function notReadOnly(tool: CatalogTool, name: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: `${name} may not be called: the policy is "read-only" and the tool ${tool.tool.annotations.readOnlyHint === false ? "says that it changes something" : "does not say that it only reads"}.`,
    hints: [
      "Use a tool whose readOnlyHint is true; get_schema shows it.",
      'Only the operator of this server can change it: "toolPolicy" in the configuration.',
    ],
  });
}

function notOnList(tool: CatalogTool, name: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: `${name} may not be called: it ${describeClaim(tool)}, and it is not on the allow-list.`,
    hints: [
      "Do without it, and tell the user what you would have changed.",
      `Only the operator of this server can allow it: add "${tool.fullName}" (or "${toSafeName(tool.tool.server)}__*") to the allow-list in the configuration.`,
    ],
  });
}

function notApproved(tool: CatalogTool, because?: string): ToolError {
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: tool.name,
    summary: `${tool.name} was not called: it ${describeClaim(tool)}, and this call was not approved${because === undefined ? "." : `: ${because}`}`,
    hints: ["Do not repeat the call. Do without it, and tell the user what you would have changed."],
  });
}

function describeClaim({ tool }: CatalogTool): string {
  return tool.annotations.destructiveHint === true ? "says that it is destructive" : "says that it changes something";
}

import { createToolError, type ToolError } from "../errors/tool-error.ts";
import { orAbort } from "../concurrency/or-abort.ts";
import { createAllowList, type AllowList, type AllowListOptions } from "./allow-list.ts";
import type { CatalogTool } from "./assign-names.ts";

export interface ToolPolicyOptions extends AllowListOptions {
  /** `read-only` requires `readOnlyHint` of every tool, without exceptions. */
  readonly toolPolicy?: "annotations" | "read-only";
  /** Asks a person about a tool that is not on the list, after all other checks have passed. */
  readonly approve?: ApproveCall;
}

/** Asks a person about one call. Rejecting counts as "no"; `because` is a sentence for the model and the person. */
export type ApproveCall = (tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal) => Promise<boolean | Approval>;

export interface Approval {
  readonly approved: boolean;
  readonly because?: string | undefined;
  /** No person saw the question. The error then says how to allow the tool in the configuration. */
  readonly wasNotAsked?: boolean | undefined;
}

type PolicyVerdict =
  | { readonly verdict: "allowed" | "ask" }
  /** `why` is a short form of the error. A tool that is hidden is not shown to models that get all schemas. */
  | { readonly verdict: "refused"; readonly toolError: ToolError; readonly why: string; readonly isHidden: boolean };

/** Decides which tools may be called, by their annotations. Annotations are claims of the server, not proof. */
export interface ToolPolicy {
  /**
   * A tool that does not say that it only reads (`readOnlyHint: true` without `destructiveHint: true`) must be on the allow-list, or a person is asked.
   * Functions of this process need that only if they say that they change something. `name` is the name by which the tool was called.
   */
  judge(tool: CatalogTool, name?: string): PolicyVerdict;
  /** For the verdict `ask`. Null when the person approves. */
  ask(tool: CatalogTool, args: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<ToolError | null>;
  /** The same rules with another way to ask. */
  approvedBy(approve: ApproveCall): ToolPolicy;
}

/** Throws UsageError for an invalid entry of `allow`. */
export function createToolPolicy({ toolPolicy = "annotations", approve, ...lists }: ToolPolicyOptions = {}): ToolPolicy {
  const allowList = createAllowList(lists);

  return {
    judge(tool, name = tool.name) {
      const claim = claimOf(tool);
      if (toolPolicy === "read-only")
        return tool.tool.annotations.readOnlyHint === true && claim !== "destructive" ? allowed : notReadOnly(tool, name);
      if (claim === "reads" || allowList.has(tool)) return allowed;
      return approve === undefined ? notOnList(tool, name, allowList) : { verdict: "ask" };
    },
    async ask(tool, args, signal) {
      try {
        const answer = approve === undefined ? false : await orAbort(approve(tool, args, signal), signal);
        const approval = typeof answer === "boolean" ? { approved: answer } : answer;
        return approval.approved ? null : notApproved(tool, approval, allowList);
      } catch {
        signal?.throwIfAborted();
        return notApproved(tool, {}, allowList);
      }
    },
    approvedBy: (other) => createToolPolicy({ ...lists, toolPolicy, approve: other }),
  };
}

const allowed: PolicyVerdict = { verdict: "allowed" };

/** What a tool says about itself. `nothing` includes tools that say only that they are not destructive. */
type Claim = "reads" | "changes" | "destructive" | "nothing";

/** The protocol's defaults are `readOnlyHint: false` and `destructiveHint: true`, so a tool without annotations may do anything. */
function claimOf({ tool: { annotations, isLocal = false } }: CatalogTool): Claim {
  const { readOnlyHint, destructiveHint } = annotations;
  if (destructiveHint === true) return "destructive";
  if (readOnlyHint === false) return "changes";
  return readOnlyHint === true || isLocal ? "reads" : "nothing";
}

const claimTexts: Readonly<Record<Claim, string>> = {
  reads: "says that it only reads",
  changes: "says that it changes something",
  destructive: "says that it is destructive",
  nothing: "does not say that it only reads",
};

/** What the tool says about itself, as the rest of a sentence that begins with its name. */
export function describeClaim(tool: CatalogTool): string {
  return claimTexts[claimOf(tool)];
}

function notReadOnly(tool: CatalogTool, name: string): PolicyVerdict {
  const claim = tool.tool.annotations.readOnlyHint === undefined ? claimTexts.nothing : describeClaim(tool);
  const why = `${name} may not be called: the policy is "read-only" and the tool ${claim}.`;
  const toolError = createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: why,
    hints: [
      "Use a tool whose readOnlyHint is true; get_schema shows it.",
      'Only the operator of this server can change it: "toolPolicy" in the configuration.',
    ],
  });
  return { verdict: "refused", toolError, why, isHidden: true };
}

/** Tools that say nothing are not hidden: a model that calls one gets the error, which says how to allow it. */
function notOnList(tool: CatalogTool, name: string, allowList: AllowList): PolicyVerdict {
  const why = `${name} may not be called: it ${describeClaim(tool)}, and it is not on the allow-list.`;
  const toolError = createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: name,
    summary: `${why} ${allowList.describeEntry(tool)}`,
    hints: [doWithout, onlyOperator],
  });
  return { verdict: "refused", toolError, why, isHidden: claimOf(tool) !== "nothing" };
}

function notApproved(tool: CatalogTool, { because, wasNotAsked = false }: Partial<Approval>, allowList: AllowList): ToolError {
  const reason = because === undefined ? "." : `: ${because}`;
  const summary = `${tool.name} was not called: it ${describeClaim(tool)}, and this call was not approved${reason}`;
  return createToolError({
    code: "TOOL_NOT_ALLOWED",
    tool: tool.name,
    summary: wasNotAsked ? `${summary} ${allowList.describeEntry(tool)}` : summary,
    hints: wasNotAsked ? [doWithout, onlyOperator] : [`Do not repeat the call. ${doWithout}`],
  });
}

const doWithout = "Do without it, and tell the user what you would have changed.";
const onlyOperator = "Only the operator of this server can change the allow-list. Show the user the line to add.";

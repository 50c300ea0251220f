import type { ToolError } from "../errors/tool-error.ts";
import type { ToolFailure } from "../tools/tool-failure.ts";
import type { ToolPolicy } from "../tools/tool-policy.ts";

/** Who looks at the calls of one script while it runs: a turn counts them, guards against loops, and asks a person where one has to be asked. */
export interface ScriptWatch {
  /** Instead of the policy that all scripts share. */
  readonly policy?: ToolPolicy | undefined;
  /** A call to a backend tool begins. Our own tools, and calls that cannot be read, are not told of. */
  begin(call: { readonly name: string; readonly args: Readonly<Record<string, unknown>> }): ScriptCallWatch;
}

export interface ScriptCallWatch {
  /** Why the call must not be made; null when it may. `overLimit`: why the script's own limit refuses it. */
  admit(overLimit: ToolError | null): ToolError | null;
  /** Once, when it is over. */
  end(end: ScriptCallEnd): void;
}

export type ScriptCallEnd =
  /** What was kept of it, the main part first. */
  | { readonly status: "ok"; readonly aliases: readonly string[] }
  /** `refused`: the backend was not asked. */
  | { readonly status: "error" | "refused"; readonly failure: ToolFailure }
  | { readonly status: "aborted" };

import type { EvidenceStore } from "../evidence/contract.ts";
import type { Session } from "./open-session.ts";
import { toSessionInput } from "./to-session-input.ts";

/** A file that is another than the one that the sandbox had. */
export interface ChangedInput {
  readonly alias: string;
  readonly bytes: number;
}

export interface BindInputs {
  readonly session: Session;
  readonly evidence: EvidenceStore;
  readonly aliases: readonly string[];
  /** What the session has, by alias, and which version of it. */
  readonly bound: Map<string, string>;
  readonly signal?: AbortSignal | undefined;
}

/** What the next cell's outcome has to tell besides its own. */
export interface BoundInputs {
  readonly inputsChanged: readonly ChangedInput[];
  /** What became of the variables, where a sandbox was replaced before the cell came to run. */
  readonly sandboxReplaced?: unknown;
}

/** Binds what the session does not have yet. A file that changed is bound anew, and what stood for the old one is let go. */
export async function bindInputs({ session, evidence, aliases, bound, signal }: BindInputs): Promise<BoundInputs> {
  const inputsChanged: ChangedInput[] = [];
  let sandboxReplaced: unknown;
  for (const alias of aliases) {
    const item = evidence.get(alias)!;
    const version = item.file?.version() ?? "";
    const before = bound.get(alias);
    if (before === version) continue;
    if (before !== undefined) {
      const { diagnostics } = await session.run({ code: toReleaseCode(alias), isQuestion: true, ...(signal && { signal }) });
      sandboxReplaced = diagnostics["sandboxReplaced"] ?? sandboxReplaced;
      inputsChanged.push({ alias, bytes: item.bytes });
    }
    session.bind(alias, toSessionInput(item));
    bound.set(alias, version);
  }
  return { inputsChanged, ...(sandboxReplaced === undefined ? {} : { sandboxReplaced }) };
}

/**
 * A name that was bound once stays with its value. The alias and local names for it are removed where they still stand for the old content, so that the
 * next use gets the new one; variables of the cells stay. The mapping of inputs is not named in full: a cell that names it gets every input shipped.
 */
function toReleaseCode(alias: string): string {
  return `
def _release(names, alias):
    given = names["inp" "uts"]
    old = given._values.get(alias, names)
    for name in [alias, *(local for local, meant in given._names.items() if meant == alias)]:
        if names.get(name) is old:
            del names[name]
_release(globals(), "${alias}")
del _release
`;
}

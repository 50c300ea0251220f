import { clearedNote, nothingConfiguredNote, requestScopeNote, tokenSwappedNote } from "../../prompts/result-notes.ts";
import type { IdentityConfiguration } from "./identity-configuration.ts";
import type {
  ActiveNames,
  CalledTool,
  IdentityAnswer,
  IdentityContext,
  IdentityState,
  SessionStateFields,
  StateKind,
} from "./identity-context.ts";
import {
  belongsToIdentity,
  choicesOf,
  hasChoice,
  identityRequired,
  plurals,
  refuseChoice,
  setters,
  stateCleared,
  toCallExtras,
} from "./identity-choices.ts";

export interface IdentityStateOptions {
  readonly configuration: IdentityConfiguration;
  /** False for a request without an MCP connection or conversation: what it sets lasts for that request only. */
  readonly sessionPresent: boolean;
  /** False if the state cannot be kept between requests, so that it lasts for one request only. */
  readonly bridgeAvailable?: boolean;
  /** True if another tenant used the same context before. The state then starts with the reason `token_swapped`. */
  readonly swapped?: boolean;
}

/** The state of one bearer token. Another token replaces it with an empty one. */
interface TokenState {
  readonly tokenHash: string | null;
  active: ActiveNames;
  /** After a token swap, the kinds that were cleared and not set again; empty if nothing had been set. Null without a swap, and once all are set again. */
  lost: ReadonlySet<StateKind> | null;
}

const noNames: ActiveNames = Object.freeze({ identity: null, region: null, profile: null });
const kinds: readonly StateKind[] = ["identity", "region", "profile"];
const MAX_LISTED = 100;

/** The state of one identity context: which identity, region and profile are active, for the bearer token of the latest request only. */
export function createIdentityState(options: IdentityStateOptions): IdentityState {
  let current: TokenState | null = null;

  return {
    open(tokenHash) {
      if (current === null) current = { tokenHash, active: noNames, lost: options.swapped === true ? new Set() : null };
      else if (current.tokenHash !== tokenHash) current = { tokenHash, active: noNames, lost: lostKinds(current) };
      const own = current;
      return createContext(options, own, () => own === current);
    },
    end() {
      current = null;
    },
  };
}

function lostKinds({ active, lost }: TokenState): ReadonlySet<StateKind> {
  return new Set([...(lost ?? []), ...kinds.filter((kind) => active[kind] !== null)]);
}

/** The context of one request. It loses its state once another token takes over (`isCurrent` is false). */
function createContext(options: IdentityStateOptions, own: TokenState, isCurrent: () => boolean): IdentityContext {
  const { configuration } = options;
  const activeNames = (): ActiveNames => (isCurrent() ? own.active : noNames);
  const stateFields = (): SessionStateFields => toStateFields(options, own.lost !== null || !isCurrent());

  function set(kind: StateKind, name: unknown): IdentityAnswer {
    const choices = choicesOf(configuration, kind);
    const refusal = isCurrent() ? refuseChoice(kind, name, choices, own.active.identity) : stateCleared(setters[kind]);
    if (refusal !== null) return { ok: false, toolError: refusal };
    const before = own.active;
    own.active = withoutForeignNames(configuration, { ...before, [kind]: name as string });
    // Cleared kinds must be set again, unless the new identity has no choice for them. If nothing was cleared, the first setter is enough.
    const lost = [...(own.lost ?? [])].filter((one) => one !== kind && hasChoice(configuration, one, own.active.identity));
    own.lost = lost.length === 0 ? null : new Set(lost);
    const cleared = kinds.filter((one) => before[one] !== null && own.active[one] === null);
    const fields = stateFields();
    const notes = [
      ...(fields.state_scope === "request" ? [requestScopeNote] : []),
      ...cleared.map(clearedNote),
      ...(lost.length === 0 ? [] : [tokenSwappedNote(lost.map((one) => setters[one]))]),
    ];
    return { ok: true, value: { ...own.active, ...fields, ...(notes.length === 0 ? {} : { note: notes.join(" ") }) } };
  }

  return {
    getSessionState: stateFields,
    getActiveContext() {
      const active = activeNames();
      const available = toAvailable(configuration, active.identity);
      const note = isEmpty(configuration) ? { note: nothingConfiguredNote } : {};
      return { ok: true, value: { ...active, ...stateFields(), available, ...note } };
    },
    setActiveIdentity: (name) => set("identity", name),
    setRegion: (name) => set("region", name),
    setActiveProfile: (name) => set("profile", name),
    refusalOf(tool) {
      if (!isCurrent()) return stateCleared(tool.name);
      return own.active.identity === null && needsIdentity(configuration, tool) ? identityRequired(configuration, tool) : null;
    },
    toCallExtras: (tool) => toCallExtras(configuration, activeNames(), tool),
  };
}

function toStateFields({ sessionPresent, bridgeAvailable = true }: IdentityStateOptions, isSwapped: boolean): SessionStateFields {
  if (!sessionPresent) return { session_present: false, state_scope: "request", state_reason: "no_mcp_session" };
  if (!bridgeAvailable) return { session_present: true, state_scope: "request", state_reason: "bridge_unavailable" };
  return { session_present: true, state_scope: "session", state_reason: isSwapped ? "token_swapped" : null };
}

/** Clears a region or profile that the active identity may not use. */
function withoutForeignNames(configuration: IdentityConfiguration, { identity, region, profile }: ActiveNames): ActiveNames {
  const keepOwn = (kind: StateKind, name: string | null): string | null =>
    name !== null && belongsToIdentity(choicesOf(configuration, kind), name, identity) ? name : null;
  return { identity, region: keepOwn("region", region), profile: keepOwn("profile", profile) };
}

function toAvailable(configuration: IdentityConfiguration, identity: string | null): Record<string, string[]> {
  return Object.fromEntries(
    kinds.map((kind) => {
      const choices = choicesOf(configuration, kind);
      const names = Object.keys(choices).filter((name) => belongsToIdentity(choices, name, identity));
      return [plurals[kind], names.slice(0, MAX_LISTED)];
    }),
  );
}

function isEmpty(configuration: IdentityConfiguration): boolean {
  return kinds.every((kind) => Object.keys(choicesOf(configuration, kind)).length === 0);
}

function needsIdentity({ identityRequired: required = [] }: IdentityConfiguration, { server, name }: CalledTool): boolean {
  return required.includes(`${server}__${name}`) || required.includes(`${server}__*`);
}

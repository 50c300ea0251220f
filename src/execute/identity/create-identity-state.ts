import type {
  ActiveNames,
  CalledTool,
  IdentityAnswer,
  IdentityConfiguration,
  IdentityContext,
  SessionStateFields,
  IdentityState,
  StateKind,
} from "./identity-context.ts";
import {
  choicesOf,
  hasChoice,
  identityRequired,
  isOf,
  plurals,
  refuseChoice,
  setters,
  swappedAway,
  toCallExtras,
} from "./identity-choices.ts";

export interface IdentityStateOptions {
  readonly configuration: IdentityConfiguration;
  /** False for a request that belongs to no session: what is set lasts for that request. */
  readonly sessionPresent: boolean;
  /** False when the session is there and its state cannot be kept, so that it lasts for a request too. */
  readonly bridgeAvailable?: boolean;
  /** The session had another tenant before: it begins as one whose token was swapped. */
  readonly swapped?: boolean;
}

/** A bearer token of the session; when another comes, it is replaced by one that holds nothing of it. */
interface Tenure {
  readonly tokenHash: string | null;
  active: ActiveNames;
  /** After a swap: what was cleared with the other token and not set again. Null when nothing is to be set again. */
  lost: ReadonlySet<StateKind> | null;
}

const nothing: ActiveNames = Object.freeze({ identity: null, region: null, profile: null });
const kinds: readonly StateKind[] = ["identity", "region", "profile"];
const MAX_LISTED = 100;

export function createIdentityState(options: IdentityStateOptions): IdentityState {
  const { configuration, sessionPresent, bridgeAvailable = true, swapped = false } = options;
  const scope = sessionPresent && bridgeAvailable ? "session" : "request";
  let current: Tenure | null = null;

  function bearerChanged(tokenHash: string | null): void {
    if (current === null) current = { tokenHash, active: nothing, lost: swapped ? new Set() : null };
    else if (current.tokenHash !== tokenHash) current = { tokenHash, active: nothing, lost: whatIsLost(current) };
  }

  function open(tokenHash: string | null): IdentityContext {
    bearerChanged(tokenHash);
    return createContext(current!);
  }

  function createContext(own: Tenure): IdentityContext {
    const isCurrent = (): boolean => own === current;
    const active = (): ActiveNames => (isCurrent() ? own.active : nothing);

    function fields(): SessionStateFields {
      return { session_present: sessionPresent, state_scope: scope, state_reason: reason() };
    }

    function reason(): SessionStateFields["state_reason"] {
      if (!sessionPresent) return "no_mcp_session";
      if (!bridgeAvailable) return "bridge_unavailable";
      return own.lost !== null || !isCurrent() ? "token_swapped" : null;
    }

    function set(kind: StateKind, name: unknown): IdentityAnswer {
      const choices = choicesOf(configuration, kind);
      const refusal = isCurrent() ? refuseChoice(kind, name, choices, own.active.identity) : swappedAway(setters[kind]);
      if (refusal !== null) return { ok: false, toolError: refusal };
      const before = own.active;
      own.active = withoutForeign(configuration, { ...before, [kind]: name as string });
      // What was cleared has to be set again, unless the new tenant has none of it. Where nothing was cleared, the first setter begins the new tenure.
      const lost = [...(own.lost ?? [])].filter((one) => one !== kind && hasChoice(configuration, one, own.active.identity));
      own.lost = lost.length === 0 ? null : new Set(lost);
      const cleared = kinds.filter((one) => before[one] !== null && own.active[one] === null);
      const note = toNote(cleared, own.lost, scope === "request");
      return { ok: true, value: { ...own.active, ...fields(), ...(note === "" ? {} : { note }) } };
    }

    return {
      getSessionState: fields,
      getActiveContext() {
        const available = toAvailable(configuration, active().identity);
        return { ok: true, value: { ...active(), ...fields(), available, ...(isEmpty(configuration) ? { note: nothingToChoose } : {}) } };
      },
      setActiveIdentity: (name) => set("identity", name),
      setRegion: (name) => set("region", name),
      setActiveProfile: (name) => set("profile", name),
      refusalOf(tool) {
        if (!isCurrent()) return swappedAway(tool.name);
        return own.active.identity === null && needsIdentity(configuration, tool) ? identityRequired(configuration, tool) : null;
      },
      toCallExtras: (tool) => toCallExtras(configuration, active(), tool),
    };
  }

  return {
    bearerChanged,
    open,
    end() {
      current = null;
    },
  };
}

function whatIsLost({ active, lost }: Tenure): ReadonlySet<StateKind> {
  return new Set([...(lost ?? []), ...kinds.filter((kind) => active[kind] !== null)]);
}

/** Another identity does not keep a region or profile that is not its own. */
function withoutForeign(configuration: IdentityConfiguration, { identity, region, profile }: ActiveNames): ActiveNames {
  const keep = (kind: StateKind, name: string | null): string | null =>
    name !== null && isOf(choicesOf(configuration, kind), name, identity) ? name : null;
  return { identity, region: keep("region", region), profile: keep("profile", profile) };
}

function toAvailable(configuration: IdentityConfiguration, identity: string | null): Record<string, string[]> {
  return Object.fromEntries(
    kinds.map((kind) => {
      const choices = choicesOf(configuration, kind);
      const names = Object.keys(choices).filter((name) => isOf(choices, name, identity));
      return [plurals[kind], names.slice(0, MAX_LISTED)];
    }),
  );
}

const nothingToChoose = "No identities, regions or profiles are configured (session in the configuration): calls are made without them.";

function isEmpty(configuration: IdentityConfiguration): boolean {
  return kinds.every((kind) => Object.keys(choicesOf(configuration, kind)).length === 0);
}

function toNote(cleared: readonly StateKind[], lost: ReadonlySet<StateKind> | null, isRequest: boolean): string {
  const notes = [
    ...(isRequest ? ["This lasts for this request only: set it again in each execute block."] : []),
    ...cleared.map((kind) => `The active ${kind} does not belong to this identity and was cleared.`),
    ...(lost === null
      ? []
      : [
          `The bearer token of this session has changed, and what was set before is gone: call ${[...lost].map((kind) => setters[kind]).join(" and ")} too.`,
        ]),
  ];
  return notes.join(" ");
}

function needsIdentity({ identityRequired: needing = [] }: IdentityConfiguration, { server, name }: CalledTool): boolean {
  return needing.includes(`${server}__${name}`) || needing.includes(`${server}__*`);
}

import { quote } from "../../errors/argument-path.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { createToolError, receivedType, type ToolError } from "../../errors/tool-error.ts";
import { clearedNote, identityHints, nothingConfiguredNote, requestScopeNote, tokenSwappedNote } from "../../prompts/result-notes.ts";
import { isRecord } from "../../text/json.ts";
import type { IdentityConfiguration, Ride, StateChoices } from "./identity-configuration.ts";
import type {
  ActiveNames,
  CalledTool,
  CallExtras,
  IdentityAnswer,
  IdentityContext,
  IdentityState,
  SessionStateFields,
  StateKind,
} from "./identity-context.ts";

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
  readonly subject: string | null;
  active: ActiveNames;
  /** After a token swap, the kinds that were cleared and not set again; empty if nothing had been set. Null without a swap, and once all are set again. */
  lost: ReadonlySet<StateKind> | null;
}

const setters: Readonly<Record<StateKind, string>> = {
  identity: "set_active_identity",
  region: "set_region",
  profile: "set_active_profile",
};
const plurals: Readonly<Record<StateKind, string>> = { identity: "identities", region: "regions", profile: "profiles" };
const noNames: ActiveNames = Object.freeze({ identity: null, region: null, profile: null });
const kinds: readonly StateKind[] = ["identity", "region", "profile"];
const MAX_LISTED = 100;

/** The state of one identity context: which identity, region and profile are active, for the bearer token of the latest request only. */
export function createIdentityState(options: IdentityStateOptions): IdentityState {
  let current: TokenState | null = null;

  return {
    open(subject) {
      if (current === null) current = { subject, active: noNames, lost: options.swapped === true ? new Set() : null };
      else if (current.subject !== subject) current = { subject, active: noNames, lost: lostKinds(current) };
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
    const canBeSet = (one: StateKind): boolean =>
      one === "identity" || usableNames(choicesOf(configuration, one), own.active.identity).length > 0;
    own.active = withoutForeignNames(configuration, { ...before, [kind]: name as string });
    // Cleared kinds must be set again, unless the new identity has no choice for them. If nothing was cleared, the first setter is enough.
    const lost = [...(own.lost ?? [])].filter((one) => one !== kind && canBeSet(one));
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
      const available = Object.fromEntries(
        kinds.map((kind) => [plurals[kind], usableNames(choicesOf(configuration, kind), active.identity).slice(0, MAX_LISTED)]),
      );
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

function isEmpty(configuration: IdentityConfiguration): boolean {
  return kinds.every((kind) => Object.keys(choicesOf(configuration, kind)).length === 0);
}

function needsIdentity({ identityRequired: required = [] }: IdentityConfiguration, { server, name }: CalledTool): boolean {
  return required.includes(`${server}__${name}`) || required.includes(`${server}__*`);
}

function choicesOf({ identities, regions, profiles }: IdentityConfiguration, kind: StateKind): StateChoices["choices"] {
  return { identity: identities, region: regions, profile: profiles }[kind]?.choices ?? {};
}

/** Whether this identity may use the choice. A choice without `identities` is open to all. */
function belongsToIdentity(choices: StateChoices["choices"], name: string, identity: string | null): boolean {
  const owners = choices[name]?.identities;
  return owners === undefined || (identity !== null && owners.includes(identity));
}

function usableNames(choices: StateChoices["choices"], identity: string | null): string[] {
  return Object.keys(choices).filter((name) => belongsToIdentity(choices, name, identity));
}

/** The tool error for a name that cannot be set; null if it can. */
function refuseChoice(kind: StateKind, name: unknown, choices: StateChoices["choices"], identity: string | null): ToolError | null {
  const tool = setters[kind];
  const names = Object.keys(choices);
  if (typeof name !== "string") {
    return createToolError({
      code: name === undefined ? "SCHEMA_REQUIRED" : "SCHEMA_TYPE_MISMATCH",
      tool,
      summary: name === undefined ? `${tool} needs ${kind}.` : `${kind} must be a string.`,
      details: [{ path: kind, issue: name === undefined ? "is required" : "must be a string", received_type: receivedType(name) }],
      hints: [listOf(kind, names)],
      examples: names.slice(0, 1).map((one) => ({ [kind]: one })),
    });
  }
  if (!Object.hasOwn(choices, name)) return unknownName(kind, name, names);
  if (kind === "identity" || belongsToIdentity(choices, name, identity)) return null;
  return createToolError({
    code: identity === null ? "ACTIVE_IDENTITY_REQUIRED" : "SCHEMA_ENUM_MISMATCH",
    tool,
    summary: `The ${kind} ${quote(name)} belongs to ${describeOwners(choices, name)}; the active identity is ${identity === null ? "none" : quote(identity)}.`,
    details: [{ path: kind, issue: "does not belong to the active identity", received_type: "string" }],
    hints: [`Call set_active_identity first, with ${describeOwners(choices, name)}.`, listOf(kind, usableNames(choices, identity))],
  });
}

function unknownName(kind: StateKind, name: string, names: readonly string[]): ToolError {
  const near = nearestName(name, names);
  return createToolError({
    code: "SCHEMA_ENUM_MISMATCH",
    tool: setters[kind],
    summary: `Unknown ${kind} ${quote(name)}${names.length === 0 ? `: no ${plurals[kind]} are configured` : ""}.`,
    details: [{ path: kind, issue: `is not one of the configured ${plurals[kind]}`, received_type: "string" }],
    hints: names.length === 0 ? [noneConfigured(kind)] : [...(near === null ? [] : [`Did you mean ${quote(near)}?`]), listOf(kind, names)],
    examples: near === null ? [] : [{ [kind]: near }],
  });
}

function listOf(kind: StateKind, names: readonly string[]): string {
  if (names.length === 0) return `No ${plurals[kind]} can be set here.`;
  const shown = names.slice(0, 20).map(quote).join(", ");
  return `The ${plurals[kind]} are ${shown}${names.length > 20 ? ` and ${names.length - 20} more (get_active_context lists them)` : ""}.`;
}

function noneConfigured(kind: StateKind): string {
  return `Call backend tools without a ${kind}. An operator can add ${plurals[kind]} to the configuration, under session.${plurals[kind]}.choices.`;
}

function describeOwners(choices: StateChoices["choices"], name: string): string {
  return (choices[name]?.identities ?? []).slice(0, 5).map(quote).join(" or ") || "no identity";
}

function identityRequired(configuration: IdentityConfiguration, { name }: CalledTool): ToolError {
  const names = Object.keys(choicesOf(configuration, "identity"));
  return createToolError({
    code: "ACTIVE_IDENTITY_REQUIRED",
    tool: name,
    summary: `${name} needs an active identity, but none is set.`,
    hints: [identityHints.setFirst, listOf("identity", names)],
    examples: names.slice(0, 1).map((identity) => ({ tool: "set_active_identity", params: { identity } })),
  });
}

/** For requests that still run with the previous token after another token took over. */
function stateCleared(tool: string): ToolError {
  return createToolError({
    code: "AUTHENTICATION_ERROR",
    tool,
    summary: "A request with another bearer token cleared the identity, region and profile while this one was running.",
    hints: [identityHints.newRequest],
  });
}

/** The headers, `_meta` fields and arguments that the configuration adds to a call of this tool. */
function toCallExtras(configuration: IdentityConfiguration, active: ActiveNames, tool: CalledTool): CallExtras {
  const parts = { header: {}, meta: {}, argument: {} } as Record<Ride["as"], Record<string, string>>;
  const add = (choices: StateChoices | undefined, name: string | null): void => {
    if (choices === undefined || name === null) return;
    const value = choices.choices[name]?.value ?? name;
    for (const ride of choices.rides ?? []) if (appliesTo(ride, tool)) parts[ride.as][ride.name] = value;
  };
  add(configuration.identities, active.identity);
  add(configuration.regions, active.region);
  add(configuration.profiles, active.profile);
  return {
    headers: nonEmpty(parts.header),
    meta: nonEmpty(parts.meta),
    extraArguments: nonEmpty(parts.argument),
  };
}

function appliesTo({ as, name, servers }: Ride, { server, inputSchema }: CalledTool): boolean {
  if (!servers.includes(server)) return false;
  const { properties } = inputSchema;
  return as !== "argument" || (isRecord(properties) && Object.hasOwn(properties, name));
}

function nonEmpty(record: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined {
  return Object.keys(record).length === 0 ? undefined : record;
}

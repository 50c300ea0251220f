import type { IdentityConfiguration, Ride, StateChoices } from "./identity-configuration.ts";
import type { ActiveNames, CalledTool, CallExtras, StateKind } from "./identity-context.ts";
import { quote } from "../../errors/argument-path.ts";
import { createToolError, type ToolError, receivedType } from "../../errors/tool-error.ts";
import { nearestName } from "../../errors/nearest-name.ts";
import { isRecord } from "../../text/json.ts";

export const setters: Readonly<Record<StateKind, string>> = {
  identity: "set_active_identity",
  region: "set_region",
  profile: "set_active_profile",
};
export const plurals: Readonly<Record<StateKind, string>> = { identity: "identities", region: "regions", profile: "profiles" };

export function choicesOf({ identities, regions, profiles }: IdentityConfiguration, kind: StateKind): StateChoices["choices"] {
  return { identity: identities, region: regions, profile: profiles }[kind]?.choices ?? {};
}

/** Whether this identity may use the choice. A choice without `identities` is open to all. */
export function belongsToIdentity(choices: StateChoices["choices"], name: string, identity: string | null): boolean {
  const owners = choices[name]?.identities;
  return owners === undefined || (identity !== null && owners.includes(identity));
}

export function hasChoice(configuration: IdentityConfiguration, kind: StateKind, identity: string | null): boolean {
  const choices = choicesOf(configuration, kind);
  return Object.keys(choices).some((name) => kind === "identity" || belongsToIdentity(choices, name, identity));
}

/** The tool error for a name that cannot be set; null if it can. */
export function refuseChoice(kind: StateKind, name: unknown, choices: StateChoices["choices"], identity: string | null): ToolError | null {
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
    hints: [
      `Call set_active_identity first, with ${describeOwners(choices, name)}.`,
      listOf(
        kind,
        names.filter((one) => belongsToIdentity(choices, one, identity)),
      ),
    ],
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

export function identityRequired(configuration: IdentityConfiguration, { name }: CalledTool): ToolError {
  const names = Object.keys(choicesOf(configuration, "identity"));
  return createToolError({
    code: "ACTIVE_IDENTITY_REQUIRED",
    tool: name,
    summary: `${name} needs an active identity, but none is set.`,
    hints: ["Call set_active_identity first; if state_scope is request, in each execute block.", listOf("identity", names)],
    examples: names.slice(0, 1).map((identity) => ({ tool: "set_active_identity", params: { identity } })),
  });
}

/** For requests that still run with the previous token after another token took over. */
export function stateCleared(tool: string): ToolError {
  return createToolError({
    code: "AUTHENTICATION_ERROR",
    tool,
    summary: "A request with another bearer token cleared the identity, region and profile while this one was running.",
    hints: ["No more tools can be called in this request. Send a new request and set the identity, region and profile again."],
  });
}

/** The headers, `_meta` fields and arguments that the configuration adds to a call of this tool. */
export function toCallExtras(configuration: IdentityConfiguration, active: ActiveNames, tool: CalledTool): CallExtras {
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
    ...(isEmpty(parts.header) ? {} : { headers: parts.header }),
    ...(isEmpty(parts.meta) ? {} : { meta: parts.meta }),
    ...(isEmpty(parts.argument) ? {} : { extraArguments: parts.argument }),
  };
}

function appliesTo({ as, name, servers }: Ride, { server, inputSchema }: CalledTool): boolean {
  if (!servers.includes(server)) return false;
  const { properties } = inputSchema;
  return as !== "argument" || (isRecord(properties) && Object.hasOwn(properties, name));
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  return Object.keys(record).length === 0;
}

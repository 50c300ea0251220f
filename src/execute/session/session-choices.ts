import type { SessionConfiguration, StateChoices, StateKind } from "./contract.ts";

export const setters: Readonly<Record<StateKind, string>> = {
  identity: "set_active_identity",
  region: "set_region",
  profile: "set_active_profile",
};
export const plurals: Readonly<Record<StateKind, string>> = { identity: "identities", region: "regions", profile: "profiles" };

export function choicesOf({ identities, regions, profiles }: SessionConfiguration, kind: StateKind): StateChoices["choices"] {
  return { identity: identities, region: regions, profile: profiles }[kind]?.choices ?? {};
}

export function isOf(choices: StateChoices["choices"], name: string, identity: string | null): boolean {
  const owners = choices[name]?.identities;
  return owners === undefined || (identity !== null && owners.includes(identity));
}

export function hasChoice(configuration: SessionConfiguration, kind: StateKind, identity: string | null): boolean {
  const choices = choicesOf(configuration, kind);
  return Object.keys(choices).some((name) => kind === "identity" || isOf(choices, name, identity));
}

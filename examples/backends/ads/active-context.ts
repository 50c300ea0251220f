import { identities, profiles, regions, type Profile } from "./ads-data.ts";
import type { AdsFailure } from "./ads-failure.ts";

/**
 * The identity, region and profile of a call. They are never arguments: they come in `_meta` of the call, or in headers over HTTP.
 *
 * | | `_meta` key | header |
 * |---|---|---|
 * | identity | `sluice/identity` | `X-Ads-Identity` |
 * | region | `sluice/region` | `X-Ads-Region` |
 * | profile | `sluice/profile` | `X-Ads-Profile` |
 */
const contextNames = {
  identity: { meta: "sluice/identity", header: "x-ads-identity" },
  region: { meta: "sluice/region", header: "x-ads-region" },
  profile: { meta: "sluice/profile", header: "x-ads-profile" },
} as const;

export interface CallCarrier {
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly headers: Headers | undefined;
}

/** Returns the active profile of a call, or the failure if there is none. */
export function readActiveProfile(carrier: CallCarrier): Profile | AdsFailure {
  const given = Object.fromEntries(
    Object.entries(contextNames).map(([name, { meta, header }]) => [name, carrier.meta?.[meta] ?? carrier.headers?.get(header) ?? null]),
  ) as Record<keyof typeof contextNames, unknown>;
  const missing = Object.keys(given).filter((name) => typeof given[name as keyof typeof given] !== "string");
  if (missing.length > 0) return identityRequired(missing);
  const found = profiles.find(({ profile_id }) => profile_id === given.profile);
  if (found !== undefined && found.identity === given.identity && found.region === given.region) return found;
  return {
    kind: "auth_error",
    code: "AUTH_PERMISSION",
    summary: `The identity ${String(given.identity)} has no profile ${String(given.profile)} in the region ${String(given.region)}.`,
    hints: ["list_profiles shows which profile belongs to which identity and region."],
  };
}

function identityRequired(missing: readonly string[]): AdsFailure {
  const hints = [
    `Set the active ${missing.join(", ")} first.`,
    `Identities: ${identities.join(", ")}. Regions: ${regions.join(", ")}. Profiles: see list_profiles.`,
  ];
  return { kind: "precondition_failed", code: "ACTIVE_IDENTITY_REQUIRED", summary: `There is no active ${missing.join(", ")}.`, hints };
}

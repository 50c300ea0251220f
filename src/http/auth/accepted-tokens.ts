import type { AuthToken } from "../../config/contract.ts";
import { localTenant, type AcceptedToken } from "../contract.ts";
import { hashOf } from "./create-authenticator.ts";
import { loadServerToken } from "./load-server-token.ts";

export interface TokenSource {
  readonly tokens: readonly AcceptedToken[];
  /** The one that was made here, because the configuration names none. Of the others only the hash is known. */
  readonly made: string | null;
}

/** Everybody who may have something here. */
export function configuredTenants(configured: readonly AuthToken[]): string[] {
  return configured.length === 0 ? [localTenant] : [...new Set(configured.map(({ tenant }) => tenant))];
}

/** There is always a token. A tenant that is the only one is the operator, too. */
export async function acceptedTokens({
  configured,
  directory,
}: {
  configured: readonly AuthToken[];
  directory: string;
}): Promise<TokenSource> {
  if (configured.length === 0) {
    const made = await loadServerToken({ directory });
    return { tokens: [{ tenant: localTenant, sha256: hashOf(made), isOperator: true }], made };
  }
  const isAlone = new Set(configured.map(({ tenant }) => tenant)).size === 1;
  return {
    tokens: configured.map(({ tenant, sha256, operator = false }) => ({ tenant, sha256, isOperator: isAlone || operator })),
    made: null,
  };
}

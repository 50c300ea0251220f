import { readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { AuthToken } from "../../config/configuration-schema.ts";
import { UsageError } from "../../errors/sluice-error.ts";
import { configuredLogins } from "./authenticator.ts";
import { LoginCodes } from "./login-codes.ts";

const fileName = "server-url";

/** Keeps the address of a running server in its data directory, where `sluice login-link` finds it. Disposing removes it. */
export function publishUrl(directory: string, url: string): Disposable {
  const file = path.join(directory, fileName);
  writeFileSync(file, `${url}\n`, { mode: 0o600 });
  return { [Symbol.dispose]: () => rmSync(file, { force: true }) };
}

export interface LoginLinkOptions {
  /** The data directory of the running server. */
  readonly directory: string;
  readonly tokens: readonly AuthToken[];
  /** Default: the first tenant. */
  readonly tenant?: string | undefined;
}

/** Creates a one-time link for the server that runs on a data directory. Throws SERVER_NOT_RUNNING, or TENANT_UNKNOWN. */
export function createLoginLink({ directory, tokens, tenant }: LoginLinkOptions): { readonly tenant: string; readonly url: string } {
  const login = findLogin(tokens, tenant);
  const url = readUrl(directory);
  return { tenant: login.tenant, url: toLoginUrl(url, new LoginCodes({ directory }).create(login).code) };
}

export function toLoginUrl(origin: string, code: string): string {
  return `${origin}/login?code=${code}`;
}

function findLogin(tokens: readonly AuthToken[], tenant: string | undefined): ReturnType<typeof configuredLogins>[number] {
  const logins = configuredLogins(tokens);
  const found = tenant === undefined ? logins[0] : logins.find((login) => login.tenant === tenant);
  if (found !== undefined) return found;
  const names = logins.map((login) => JSON.stringify(login.tenant)).join(", ");
  throw new UsageError({
    code: "TENANT_UNKNOWN",
    message: `No token in auth.tokens belongs to the tenant ${JSON.stringify(tenant)}. Tenants: ${names}.`,
  });
}

function readUrl(directory: string): string {
  try {
    return readFileSync(path.join(directory, fileName), "utf8").trim();
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === "ENOENT" ? "" : ` (${(error as Error).message})`;
    throw new UsageError({
      code: "SERVER_NOT_RUNNING",
      message: `No server that needs a login runs on the data directory ${directory}${reason}.`,
      cause: error,
    });
  }
}

import path from "node:path";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { LoginRows } from "../../history/history.ts";
import { HttpFailure } from "./http-failure.ts";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import type { AuthToken } from "../../config/configuration-schema.ts";
import { SluiceError } from "../../errors/sluice-error.ts";

/** Who is asking. Everything that is found, kept or removed for a request is of its tenant. */
export interface Principal {
  readonly tenant: string;
  /** May see what the sandboxes of all tenants do. */
  readonly isOperator: boolean;
  /** Of the bearer token; null for a browser. */
  readonly tokenHash: string | null;
  readonly via: "bearer" | "cookie" | "none";
}

/** Who everybody is where no tenants are told apart. */
const localTenant = "local";

/** A token that is let in, by its hash. */
export interface AcceptedToken {
  readonly tenant: string;
  readonly sha256: string;
  readonly isOperator: boolean;
}

export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly tokens: readonly AcceptedToken[];
  readonly sessions: LoginRows;
  /** Cookies do not tell ports apart, so the name does. */
  readonly port: number;
  /** Cookies go over TLS only: what clients reach has it. */
  readonly isSecure?: boolean;
  /** Lets everybody in, as the one tenant that there is. */
  readonly isOpen?: boolean;
  readonly now?: () => Date;
}

/** Of one tenant that wait for a browser. Past it the oldest goes. */
const MAX_CODES = 100;
const CODE_LIFETIME_MS = 24 * 60 * 60_000;
const SESSION_LIFETIME_S = 30 * 24 * 60 * 60;

export function createAuthenticator({
  tokens,
  sessions,
  port,
  isOpen = false,
  isSecure = false,
  now = () => new Date(),
}: AuthenticatorOptions) {
  const codes = new Map<string, { tenant: string; isOperator: boolean; expiresAt: number }>();
  const cookieName = `sluice_session_${port}`;
  const nobody: Principal = { tenant: localTenant, isOperator: true, tokenHash: null, via: "none" };

  const toCookie = (value: string, seconds: number): string =>
    `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`;

  function byBearer(authorization: string): Principal | null {
    const token = /^Bearer ([\w.~+/=-]{1,512})$/i.exec(authorization)?.[1];
    if (token === undefined) return null;
    const hash = hashOf(token);
    let found: AcceptedToken | null = null;
    // All of them are compared, each in constant time: how long it takes says nothing about which one it was.
    for (const one of tokens) if (isSame(one.sha256, hash)) found = one;
    return found === null ? null : { tenant: found.tenant, isOperator: found.isOperator, tokenHash: found.sha256, via: "bearer" };
  }

  function byCookie(header: string): Principal | null {
    const value = readCookie(header, cookieName);
    const session = value === null ? null : sessions.find(hashOf(value), now().toISOString());
    if (session === null) return null;
    // A session is worth what its tenant's tokens are worth now: one that was taken away takes its browsers with it.
    const own = tokens.filter(({ tenant }) => tenant === session.tenant);
    if (own.length === 0) return null;
    const isOperator = session.isOperator && own.some((token) => token.isOperator);
    return { tenant: session.tenant, isOperator, tokenHash: null, via: "cookie" };
  }

  return {
    mode: isOpen ? ("none" as const) : ("token" as const),
    /** Who a request is from; null when it does not say, or not right. */
    identify(headers: Headers): Principal | null {
      if (isOpen) return nobody;
      const authorization = headers.get("authorization");
      if (authorization !== null) return byBearer(authorization);
      const cookie = headers.get("cookie");
      return cookie === null ? null : byCookie(cookie);
    },
    /** A link that lets one browser in, once. */
    newLoginCode({ tenant, isOperator }: { tenant: string; isOperator: boolean }): { code: string; expiresAt: string } {
      const code = randomBytes(32).toString("base64url");
      const expiresAt = now().getTime() + CODE_LIFETIME_MS;
      const own = [...codes].filter(([, given]) => given.tenant === tenant);
      for (const [old] of own.slice(0, Math.max(0, own.length + 1 - MAX_CODES))) codes.delete(old);
      codes.set(hashOf(code), { tenant, isOperator, expiresAt });
      return { code, expiresAt: new Date(expiresAt).toISOString() };
    },
    /** The cookie of a new session for a code; null when the code was used, is too old, or never was. */
    exchange(code: string): string | null {
      const hash = hashOf(code);
      const given = codes.get(hash);
      codes.delete(hash);
      if (given === undefined || given.expiresAt <= now().getTime()) return null;
      const value = randomBytes(32).toString("base64url");
      const expiresAt = new Date(now().getTime() + SESSION_LIFETIME_S * 1000).toISOString();
      sessions.removeExpired(now().toISOString());
      sessions.add(hashOf(value), { tenant: given.tenant, isOperator: given.isOperator, expiresAt });
      return toCookie(value, SESSION_LIFETIME_S);
    },
    /** Forgets the session of a request; the cookie that takes it away. */
    logout(headers: Headers): string {
      const value = readCookie(headers.get("cookie") ?? "", cookieName);
      if (value !== null) sessions.remove(hashOf(value));
      return toCookie("", 0);
    },
  };
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isSame(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, "hex"), Buffer.from(b, "hex"));
}

function readCookie(header: string, name: string): string | null {
  for (const part of header.split(";")) {
    const [key, value] = part.trim().split("=", 2);
    if (key === name && value !== undefined && value !== "") return value;
  }
  return null;
}

export function unauthorized(): HttpFailure {
  return new HttpFailure({ code: "UNAUTHORIZED", message: "This needs a token, and none that is known came with the request." });
}

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

/**
 * The token of a server whose configuration names none. It is made once and kept where only its owner can read it, so that what was pasted into a client's
 * configuration still works after a restart.
 */
async function loadServerToken({ directory }: { directory: string }): Promise<string> {
  const file = path.join(directory, "server-token");
  try {
    const kept = (await readFile(file, "utf8").catch(() => "")).trim();
    if (/^[\w-]{32,}$/.test(kept)) {
      await chmod(file, 0o600);
      return kept;
    }
    const token = randomBytes(32).toString("base64url");
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(file, `${token}\n`, { mode: 0o600 });
    await chmod(file, 0o600);
    return token;
  } catch (error) {
    throw new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `The server's token cannot be kept in ${file}: ${(error as Error).message}.`,
      hint: "Free space, or choose another directory (artifacts.directory).",
      cause: error,
    });
  }
}

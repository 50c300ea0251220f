import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { AuthToken } from "../../config/configuration-schema.ts";
import { SluiceError } from "../../errors/sluice-error.ts";
import type { LoginRows } from "../../history/rows.ts";
import { HttpFailure } from "./http-failure.ts";
import type { LoginCodes } from "./login-codes.ts";

/** Who sent a request. A request only ever sees and changes data of its tenant. */
export interface Principal {
  readonly tenant: string;
  /** May see metrics and probes of all tenants. */
  readonly isOperator: boolean;
  /** Whom the bearer token stands for: the configured subject, otherwise the token's own hash. Null for a browser. */
  readonly subject: string | null;
  readonly via: "bearer" | "cookie" | "none";
}

/** The only tenant of a server without configured tokens. */
const localTenant = "local";

/** A bearer token that is accepted, known by its hash. */
export interface AcceptedToken {
  readonly tenant: string;
  readonly sha256: string;
  readonly isOperator: boolean;
  /** Whom the token stands for. Null on a server for one person, whose browser has no subject either. */
  readonly subject: string | null;
}

export interface AuthenticatorOptions {
  readonly tokens: readonly AcceptedToken[];
  readonly logins: LoginRows;
  readonly codes: LoginCodes;
  /** Part of the cookie's name, because browsers send cookies to all ports of a host. */
  readonly port: number;
  /** Restricts cookies to TLS, for a server that clients reach by https. */
  readonly isSecure?: boolean;
  /** Accepts every request, as the local tenant. */
  readonly isOpen?: boolean;
  readonly now?: () => Date;
}

const LOGIN_LIFETIME_S = 30 * 24 * 60 * 60;

/** Identifies the sender of a request by bearer token or by cookie, and logs browsers in and out. */
export class Authenticator {
  readonly mode: "none" | "token";
  readonly codes: LoginCodes;
  readonly #tokens: readonly AcceptedToken[];
  readonly #logins: LoginRows;
  readonly #cookieName: string;
  readonly #isSecure: boolean;
  readonly #now: () => Date;

  constructor({ tokens, logins, codes, port, isOpen = false, isSecure = false, now = () => new Date() }: AuthenticatorOptions) {
    this.mode = isOpen ? "none" : "token";
    this.#tokens = tokens;
    this.#logins = logins;
    this.codes = codes;
    this.#cookieName = `sluice_session_${port}`;
    this.#isSecure = isSecure;
    this.#now = now;
  }

  /** Null for a request without a valid token or cookie. */
  identify(headers: Headers): Principal | null {
    if (this.mode === "none") return { tenant: localTenant, isOperator: true, subject: null, via: "none" };
    const authorization = headers.get("authorization");
    if (authorization !== null) return this.#identifyByBearer(authorization);
    const cookie = headers.get("cookie");
    return cookie === null ? null : this.#identifyByCookie(cookie);
  }

  /** Exchanges a login code for a `Set-Cookie` header, and ends the login that the browser had. Null if the code is unknown, used or expired. */
  logIn(code: string, headers: Headers): string | null {
    const found = this.codes.take(code);
    if (found === null) return null;
    const now = this.#now();
    this.logOut(headers);
    const value = randomBytes(32).toString("base64url");
    const expiresAt = new Date(now.getTime() + LOGIN_LIFETIME_S * 1000).toISOString();
    this.#logins.removeExpired(now.toISOString());
    this.#logins.add(sha256(value), { tenant: found.tenant, isOperator: found.isOperator, expiresAt });
    return this.#toCookie(value, LOGIN_LIFETIME_S);
  }

  /** Removes the login of a request. Returns the `Set-Cookie` header that deletes the cookie. */
  logOut(headers: Headers): string {
    const value = readCookie(headers.get("cookie") ?? "", this.#cookieName);
    if (value !== null) this.#logins.remove(sha256(value));
    return this.#toCookie("", 0);
  }

  #identifyByBearer(authorization: string): Principal | null {
    const token = /^Bearer ([\w.~+/=-]{1,512})$/i.exec(authorization)?.[1];
    if (token === undefined) return null;
    const hash = sha256(token);
    let found: AcceptedToken | null = null;
    // Compares with every token, each in constant time, so that the duration does not reveal which one matched.
    for (const accepted of this.#tokens) if (isSameHash(accepted.sha256, hash)) found = accepted;
    return found === null ? null : { tenant: found.tenant, isOperator: found.isOperator, subject: found.subject, via: "bearer" };
  }

  #identifyByCookie(header: string): Principal | null {
    const value = readCookie(header, this.#cookieName);
    const login = value === null ? null : this.#logins.find(sha256(value), this.#now().toISOString());
    if (login === null) return null;
    // A login never has more rights than the tokens that its tenant has now, and none once the last of them was removed.
    const tokens = this.#tokens.filter(({ tenant }) => tenant === login.tenant);
    if (tokens.length === 0) return null;
    const isOperator = login.isOperator && tokens.some((token) => token.isOperator);
    return { tenant: login.tenant, isOperator, subject: null, via: "cookie" };
  }

  #toCookie(value: string, maxAgeSeconds: number): string {
    return `${this.#cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${this.#isSecure ? "; Secure" : ""}`;
  }
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function isSameHash(a: string, b: string): boolean {
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
  return new HttpFailure({ code: "UNAUTHORIZED", message: "The request has no valid token." });
}

export interface ServerTokens {
  readonly accepted: readonly AcceptedToken[];
  /** The token of a server without configured ones. Of configured tokens only the hash is known. */
  readonly generated: string | null;
}

/** All tenants that can have data on this server. */
export function configuredTenants(configured: readonly AuthToken[]): string[] {
  return configured.length === 0 ? [localTenant] : [...new Set(configured.map(({ tenant }) => tenant))];
}

/** The rights of a login for each tenant: those of its tokens together. The only tenant of a server is an operator. */
export function configuredLogins(configured: readonly AuthToken[]): { readonly tenant: string; readonly isOperator: boolean }[] {
  const tenants = configuredTenants(configured);
  return tenants.map((tenant) => {
    const isOperator = tenants.length === 1 || configured.some((token) => token.tenant === tenant && token.operator === true);
    return { tenant, isOperator };
  });
}

/** The configured tokens, or a generated one. The tokens of a single tenant are also operators. */
export async function loadTokens(configured: readonly AuthToken[], directory: string): Promise<ServerTokens> {
  if (configured.length === 0) {
    const generated = await loadGeneratedToken(directory);
    return { accepted: [{ tenant: localTenant, sha256: sha256(generated), isOperator: true, subject: null }], generated };
  }
  const isSingleTenant = configuredTenants(configured).length === 1;
  const accepted = configured.map(({ tenant, sha256: hash, operator = false, subject }) => {
    // Prefixed, so that no configured name is taken for the hash of another token.
    const whom = subject === undefined ? `token:${hash}` : `subject:${subject}`;
    return { tenant, sha256: hash, isOperator: isSingleTenant || operator, subject: whom };
  });
  return { accepted, generated: null };
}

/** Generated once and stored readable by its owner only, so that clients configured with it still work after a restart. */
async function loadGeneratedToken(directory: string): Promise<string> {
  const file = path.join(directory, "server-token");
  try {
    const stored = (await readFile(file, "utf8").catch(() => "")).trim();
    if (/^[\w-]{32,}$/.test(stored)) {
      await chmod(file, 0o600);
      return stored;
    }
    const token = randomBytes(32).toString("base64url");
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(file, `${token}\n`, { mode: 0o600 });
    await chmod(file, 0o600);
    return token;
  } catch (error) {
    throw new SluiceError({
      code: "STORAGE_UNAVAILABLE",
      message: `The server token cannot be stored in ${file}: ${(error as Error).message}.`,
      hint: "Free disk space, or choose another directory (artifacts.directory).",
      cause: error,
    });
  }
}

import { describe, expect, test } from "vitest";
import type { StoredLogin } from "../../history/history.ts";
import type { LoginRows } from "../../history/rows.ts";
import { Authenticator, sha256, type AuthenticatorOptions } from "./authenticator.ts";

describe("Authenticator", () => {
  const rows = new Map<string, StoredLogin>();
  const logins: LoginRows = {
    add: (hash, login) => void rows.set(hash, login),
    find: (hash) => rows.get(hash) ?? null,
    remove: (hash) => void rows.delete(hash),
    removeExpired: () => {},
  };
  const create = (tokens: AuthenticatorOptions["tokens"]) => new Authenticator({ tokens, logins, port: 8787 });
  const token = { tenant: "blue", sha256: sha256("secret"), isOperator: true };

  test("gives a login no more rights than the current tokens of its tenant", () => {
    const first = create([token]);
    const cookie = first.logIn(first.createLoginCode({ tenant: "blue", isOperator: true }).code)!.split(";")[0]!;
    const identifyWith = (tokens: AuthenticatorOptions["tokens"]) => create(tokens).identify(new Headers({ cookie }));
    expect(identifyWith([token])).toEqual({ tenant: "blue", isOperator: true, tokenHash: null, via: "cookie" });
    expect(identifyWith([{ ...token, isOperator: false }])).toEqual({ tenant: "blue", isOperator: false, tokenHash: null, via: "cookie" });
    expect(identifyWith([{ ...token, tenant: "green" }])).toBeNull();
  });

  test("restricts cookies to TLS if clients reach the server by https", () => {
    const cookieOf = (isSecure: boolean): string => {
      const authenticator = new Authenticator({ tokens: [token], logins, port: 8787, isSecure });
      return `${authenticator.logIn(authenticator.createLoginCode(token).code)!.split("; ").slice(1).join("; ")} | ${authenticator.logOut(new Headers())}`;
    };
    const set = "Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000";
    const deleted = "sluice_session_8787=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
    expect([cookieOf(false), cookieOf(true)]).toEqual([`${set} | ${deleted}`, `${set}; Secure | ${deleted}; Secure`]);
  });

  test("accepts the last hundred login codes of a tenant, each once, for one day", () => {
    let now = new Date("2026-01-01T00:00:00Z");
    const authenticator = new Authenticator({ tokens: [token], logins, port: 8787, now: () => now });
    const otherTenant = authenticator.createLoginCode({ tenant: "green", isOperator: false }).code;
    const codes = Array.from({ length: 101 }, () => authenticator.createLoginCode(token).code);
    const isAccepted = (code: string): boolean => authenticator.logIn(code) !== null;
    expect([codes[0]!, codes[1]!, codes[1]!, codes[100]!, otherTenant].map(isAccepted)).toEqual([false, true, false, true, true]);
    now = new Date("2026-01-02T00:00:00Z");
    expect(isAccepted(codes[2]!)).toBe(false);
  });
});

import { describe, expect, test } from "vitest";
import type { LoginRows } from "../../history/history.ts";
import { createAuthenticator, hashOf, type AuthenticatorOptions } from "./create-authenticator.ts";

type Session = NonNullable<ReturnType<LoginRows["find"]>>;

describe("a browser's session", () => {
  const kept = new Map<string, Session>();
  const sessions: LoginRows = {
    add: (hash, session) => void kept.set(hash, session),
    find: (hash) => kept.get(hash) ?? null,
    remove: (hash) => void kept.delete(hash),
    removeExpired: () => {},
  };
  const open = (tokens: AuthenticatorOptions["tokens"]) => createAuthenticator({ tokens, sessions, port: 8787 });
  const token = { tenant: "blue", sha256: hashOf("secret"), isOperator: true };

  test("is worth what the tokens of its tenant are worth now", () => {
    const first = open([token]);
    const cookie = first.exchange(first.newLoginCode({ tenant: "blue", isOperator: true }).code)!.split(";")[0]!;
    const seenBy = (tokens: AuthenticatorOptions["tokens"]) => open(tokens).identify(new Headers({ cookie }));
    expect(seenBy([token])).toEqual({ tenant: "blue", isOperator: true, tokenHash: null, via: "cookie" });
    expect(seenBy([{ ...token, isOperator: false }])).toEqual({ tenant: "blue", isOperator: false, tokenHash: null, via: "cookie" });
    expect(seenBy([{ ...token, tenant: "green" }])).toBeNull();
  });

  test("goes over TLS only where clients reach the server by it", () => {
    const cookieOf = (isSecure: boolean): string => {
      const one = createAuthenticator({ tokens: [token], sessions, port: 8787, isSecure });
      return `${one.exchange(one.newLoginCode(token).code)!.split("; ").slice(1).join("; ")} | ${one.logout(new Headers())}`;
    };
    const plain = "Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000";
    const gone = "sluice_session_8787=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
    expect([cookieOf(false), cookieOf(true)]).toEqual([`${plain} | ${gone}`, `${plain}; Secure | ${gone}; Secure`]);
  });

  test("is had by one of the last hundred links of a tenant, and by none older than a day", () => {
    let now = new Date("2026-01-01T00:00:00Z");
    const one = createAuthenticator({ tokens: [token], sessions, port: 8787, now: () => now });
    const other = one.newLoginCode({ tenant: "green", isOperator: false }).code;
    const codes = Array.from({ length: 101 }, () => one.newLoginCode(token).code);
    const takes = (code: string): boolean => one.exchange(code) !== null;
    expect([codes[0]!, codes[1]!, codes[1]!, codes[100]!, other].map(takes)).toEqual([false, true, false, true, true]);
    now = new Date("2026-01-02T00:00:00Z");
    expect(takes(codes[2]!)).toBe(false);
  });
});

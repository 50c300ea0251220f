import { describe, expect, test } from "vitest";
import type { SessionRows } from "../../history/contract.ts";
import { createAuthenticator, hashOf, type AuthenticatorOptions } from "./create-authenticator.ts";

type Session = NonNullable<ReturnType<SessionRows["find"]>>;

describe("a browser's session", () => {
  const kept = new Map<string, Session>();
  const sessions: SessionRows = {
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
});

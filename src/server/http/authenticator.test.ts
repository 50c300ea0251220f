import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { StoredLogin } from "../../history/history.ts";
import type { LoginRows } from "../../history/rows.ts";
import { Authenticator, sha256, type AuthenticatorOptions } from "./authenticator.ts";
import { LoginCodes } from "./login-codes.ts";

describe("Authenticator", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "sluice-login-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const codes = new LoginCodes({ directory });
  const rows = new Map<string, StoredLogin>();
  const logins: LoginRows = {
    add: (hash, login) => void rows.set(hash, login),
    find: (hash) => rows.get(hash) ?? null,
    remove: (hash) => void rows.delete(hash),
    removeExpired: () => {},
  };
  const create = (tokens: AuthenticatorOptions["tokens"]) => new Authenticator({ tokens, logins, codes, port: 8787 });
  const token = { tenant: "blue", sha256: sha256("secret"), isOperator: true, subject: "token:1" };

  test("gives a login no more rights than the current tokens of its tenant", () => {
    const first = create([token]);
    const cookie = first.logIn(codes.create({ tenant: "blue", isOperator: true }).code, new Headers())!.split(";")[0]!;
    const identifyWith = (tokens: AuthenticatorOptions["tokens"]) => create(tokens).identify(new Headers({ cookie }));
    expect(identifyWith([token])).toEqual({ tenant: "blue", isOperator: true, subject: null, via: "cookie" });
    expect(identifyWith([{ ...token, isOperator: false }])).toEqual({ tenant: "blue", isOperator: false, subject: null, via: "cookie" });
    expect(identifyWith([{ ...token, tenant: "green" }])).toBeNull();
  });

  test("restricts cookies to TLS if clients reach the server by https", () => {
    const cookieOf = (isSecure: boolean): string => {
      const authenticator = new Authenticator({ tokens: [token], logins, codes, port: 8787, isSecure });
      return `${authenticator.logIn(codes.create(token).code, new Headers())!.split("; ").slice(1).join("; ")} | ${authenticator.logOut(new Headers())}`;
    };
    const set = "Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000";
    const deleted = "sluice_session_8787=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
    expect([cookieOf(false), cookieOf(true)]).toEqual([`${set} | ${deleted}`, `${set}; Secure | ${deleted}; Secure`]);
  });

  test("ends the login that the browser had", () => {
    const authenticator = create([token]);
    const [first, second] = [0, 1].map(() => codes.create(token).code) as [string, string];
    const cookie = authenticator.logIn(first, new Headers())!.split(";")[0]!;
    expect(authenticator.logIn(second, new Headers({ cookie }))).not.toBeNull();
    expect(authenticator.identify(new Headers({ cookie }))).toBeNull();
  });
});

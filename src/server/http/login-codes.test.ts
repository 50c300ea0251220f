import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLoginLink, publishUrl } from "./login-link.ts";
import { LoginCodes } from "./login-codes.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "sluice-codes-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const blue = { tenant: "blue", isOperator: true };

describe("LoginCodes", () => {
  test("accepts the last hundred codes of a tenant, each once, for one day", () => {
    let ms = Date.parse("2026-01-01T00:00:00Z");
    const codes = new LoginCodes({ directory, now: () => new Date((ms += 1)) });
    const otherTenant = codes.create({ tenant: "green", isOperator: false }).code;
    const created = Array.from({ length: 101 }, () => codes.create(blue).code);
    expect([created[0]!, created[1]!, created[1]!, created[100]!, otherTenant].map((code) => codes.take(code)?.tenant ?? null)).toEqual([
      null,
      "blue",
      null,
      "blue",
      "green",
    ]);
    ms = Date.parse("2026-01-03T00:00:00Z");
    expect(codes.take(created[2]!)).toBeNull();
    codes.create(blue);
    expect(readdirSync(path.join(directory, "login-codes"))).toHaveLength(1);
  });

  test("keeps only hashes, readable by the owner, and reads what another process has added", () => {
    const { code } = new LoginCodes({ directory }).create(blue);
    const [file] = readdirSync(path.join(directory, "login-codes")).map((name) => path.join(directory, "login-codes", name));
    expect(`${file} ${readFileSync(file!, "utf8")}`).not.toContain(code);
    expect([statSync(file!).mode & 0o777, statSync(path.dirname(file!)).mode & 0o777]).toEqual([0o600, 0o700]);
    const other = new LoginCodes({ directory });
    expect([other.find(code)?.tenant, other.find(code)?.tenant]).toEqual(["blue", "blue"]);
    expect([other.find(""), other.find("../server-token"), other.find(`${code}x`)]).toEqual([null, null, null]);
  });
});

describe("a login link", () => {
  const tokens = [
    { tenant: "ann", sha256: "a" },
    { tenant: "bob", sha256: "b" },
    { tenant: "bob", sha256: "c", operator: true },
  ];

  test("is for the first tenant by default, and has the rights of the tenant's tokens", () => {
    using _url = publishUrl(directory, "http://127.0.0.1:8787");
    const rightsOf = (tenant?: string): unknown => {
      const { url } = createLoginLink({ directory, tokens, tenant });
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:8787\/login\?code=[\w-]{43}$/);
      const { expiresAt: _, ...rights } = new LoginCodes({ directory }).find(new URL(url).searchParams.get("code")!)!;
      return rights;
    };
    expect([rightsOf(), rightsOf("bob")]).toEqual([
      { tenant: "ann", isOperator: false },
      { tenant: "bob", isOperator: true },
    ]);
    expect(() => createLoginLink({ directory, tokens, tenant: "cy" })).toThrow(
      'No token in auth.tokens belongs to the tenant "cy". Tenants: "ann", "bob".',
    );
  });

  test("needs a running server", () => {
    {
      using _url = publishUrl(directory, "http://127.0.0.1:8787");
      expect(statSync(path.join(directory, "server-url")).mode & 0o777).toBe(0o600);
    }
    expect(() => createLoginLink({ directory, tokens: [] })).toThrow(
      `No server that needs a login runs on the data directory ${directory}.`,
    );
  });
});

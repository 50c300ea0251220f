import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findCredentials, toCredentialError, withoutSecrets } from "./find-credentials.ts";

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
const opaque = "q8Zr2mK4t7Xw9pLs3VbN";

describe("names", () => {
  it.each([
    ...["authorization", "Authorization", "proxy-authorization", "Proxy-Authorization", "cookie", "Cookie", "set-cookie", "cookies"],
    ...[
      "token",
      "Token",
      "TOKEN",
      "access_token",
      "accessToken",
      "AccessToken",
      "access-token",
      "accesstoken",
      "refresh_token",
      "id_token",
    ],
    ...["api_key", "apiKey", "APIKey", "api-key", "apikey", "APIKEY", "x-api-key", "X_API_KEY", "openaiApiKey", "api_token"],
    ...["client_secret", "clientSecret", "CLIENT-SECRET", "clientsecret", "secret", "app_secret", "secret_key", "aws_secret_access_key"],
    ...["password", "dbPassword", "passwd", "pwd", "passphrase", "bearer", "bearer_token", "private_key", "session_token", "sessionToken"],
    ...[
      "x-amz-security-token",
      "x_amz_date",
      "X-Amz-Credential",
      "xAmzDate",
      "x-amzn-trace-id",
      "amazon-ads-account-id",
      "Amazon-Ads-ClientId",
    ],
    ...[
      "Amazon-Advertising-API-Scope",
      "amazon_advertising_api_clientid",
      "AmazonAdvertisingAPIScope",
      "ａpi_key",
      "tok\u200Ben",
      "credentials",
    ],
  ])("reports %j", (name) => {
    expect(findCredentials({ [name]: "x1" })).toHaveLength(1);
  });

  it.each([
    ...["next_token", "nextToken", "NextToken", "page_token", "pageToken", "next_page_token", "continuation_token", "ContinuationToken"],
    ...["syncToken", "cursor_token", "pagination_token", "idempotency_token", "max_tokens", "maxTokens", "token_count", "tokenCount"],
    ...[
      "token_type",
      "token_limit",
      "tokens_used",
      "tokenize",
      "tokenizer",
      "key",
      "primary_key",
      "keyword",
      "keywords",
      "public_key",
      "session",
    ],
    ...[
      "cookie_policy",
      "password_policy",
      "secretary",
      "authorization_status",
      "author",
      "authority",
      "session_id",
      "sort_key",
      "amazon",
      "x",
    ],
  ])("ignores %j", (name) => {
    expect(findCredentials({ [name]: opaque })).toEqual([]);
    expect(findCredentials({ [name]: 4096 })).toEqual([]);
  });

  it("ignores a token of unknown kind", () => {
    expect(findCredentials({ sell_token: "USDC", tokens: ["a", "b"], buy_token: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48" })).toEqual(
      [],
    );
  });

  it("reports tokens, but not an amount of tokens", () => {
    const counts = { input: 3, output: 4 };
    expect(findCredentials({ user_tokens: 4096, sessionTokens: "1200", SESSION_TOKENS: [1200, 7], access_tokens: counts })).toEqual([]);
    expect(findCredentials({ user_tokens: [opaque], session_tokens: { token: opaque } }).map(({ path }) => path)).toEqual([
      "user_tokens[0]",
      "session_tokens.token",
    ]);
  });

  it("reports the id of an access key, but not the id of other keys", () => {
    expect(findCredentials({ api_key_id: 7, apiKeyId: "k7", private_key_id: opaque })).toEqual([]);
    expect(findCredentials({ aws_access_key_id: opaque, accessKeyId: opaque, accesskeyid: opaque })).toHaveLength(3);
  });

  it("reports authentication headers also when they are numbers", () => {
    expect(findCredentials({ "Amazon-Ads-AccountId": 7, "Amazon-Advertising-API-Scope": 12345 })).toHaveLength(2);
  });

  it("ignores a credential name without a value", () => {
    expect(findCredentials({ token: null, password: "", accept_cookies: true, authorization: false })).toEqual([]);
  });
});

describe("values", () => {
  it.each([
    ["a bearer token", `Bearer ${opaque}`],
    ["a bearer token", "Bearer abc"],
    ["a bearer token", "bearer a1b2"],
    ["a bearer token", `curl -H 'Authorization: Bearer ${opaque}' now`],
    ["a JWT", jwt],
    ["a JWT", `the token is ${jwt}, use it`],
    ["a user name with its password", "Basic dXNlcjpwYXNz"],
    ["a user name with its password", "BASIC dXNlcjo="],
    ["an Amazon token", "Atza|IwEBIExampleExample"],
    ["an AWS access key", "AKIAIOSFODNN7EXAMPLE"],
    ["a private key", "-----BEGIN RSA PRIVATE KEY-----\nMIIE"],
    ["a GitHub token", `ghp_${"a1B2".repeat(9)}`],
    ["a Slack token", "xoxb-1234567890-abc"],
    ["an API key", `sk-${"a1B2".repeat(8)}`],
  ])("reports %s without repeating it", (_, value) => {
    for (const args of [{ query: value }, { next_token: value }, { a: [{ b: value }] }]) {
      const found = findCredentials(args);
      expect(found).toHaveLength(1);
      expect(found[0]!.issue).toMatch(/ has the form of a credential\.$/);
      expect(JSON.stringify(toCredentialError("t", found))).not.toContain(value.slice(0, 30));
      expect(withoutSecrets(value)).toContain("[removed]");
    }
  });

  it.each([
    "bearer bonds",
    "the bearer of bad news",
    "Basic Information",
    "Basic plan",
    "Basic Plan2",
    "Basic Pro6",
    "Basic 2024",
    "eyJ.eyJ",
    "a.b.c",
    "sk-learn",
    "1.2.3",
    "task-force",
  ])("ignores %j", (value) => {
    expect(findCredentials({ query: value })).toEqual([]);
    expect(withoutSecrets(value)).toBe(value);
  });

  it("reports a credential that is a key without repeating it", () => {
    const found = findCredentials({ headers: { [jwt]: 1 } });
    expect(found).toEqual([
      { path: 'headers["[removed]"]', receivedType: "number", issue: 'The name of headers["[removed]"] is a credential.' },
    ]);
  });

  it("takes time linear in the length of the text", () => {
    for (const text of ["eyJ-", ".eyJ", "bearer ", "bearer    ", "sk-", "-----BEGIN ", "AKIA", "xoxb-", "github_pat_", "Basic AAAA"]) {
      expect(findCredentials({ text: text.repeat(1_000_000) }).length).toBeLessThan(2);
    }
  });
});

it("returns a tool error that lists the paths in the order of the call", () => {
  const args = { filters: [{ name: "a" }, { headers: { Authorization: "Basic x", "X-Amz-Date": "now" } }], password: "hunter2" };
  expect(toCredentialError("ads__list", findCredentials(args))).toEqual({
    error_kind: "mcp_input_validation",
    tool: "ads__list",
    summary: "The tool was not called: 3 arguments look like credentials.",
    details: [
      {
        path: "filters[1].headers.Authorization",
        issue: "filters[1].headers.Authorization has the name of a credential.",
        received_type: "string",
        error_code: "CREDENTIAL_ARGUMENT",
      },
      {
        path: 'filters[1].headers["X-Amz-Date"]',
        issue: 'filters[1].headers["X-Amz-Date"] has the name of a credential.',
        received_type: "string",
        error_code: "CREDENTIAL_ARGUMENT",
      },
      { path: "password", issue: "password has the name of a credential.", received_type: "string", error_code: "CREDENTIAL_ARGUMENT" },
    ],
    hints: [
      "Leave credentials out: Sluice adds those of the active identity to the call. Scripts neither have nor need them.",
      "Use get_session_state to check the context, and set_active_identity to choose the identity that tools are called with.",
    ],
    examples: [],
    error_code: "CREDENTIAL_ARGUMENT",
    retryable: false,
    _envelope_version: 1,
  });
});

it("finds a JWT anywhere in the arguments and never throws", () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 4 }), fc.string(), fc.string(), (around, before, after) => {
      expect(findCredentials({ around: 1, deep: [{ x: `${before} ${jwt} ${after}` }] })).toHaveLength(1);
      findCredentials(around);
    }),
  );
  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  expect(findCredentials(cyclic)).toEqual([]);
});

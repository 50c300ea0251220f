import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, plainScript, shortScript, type TestServer } from "./fixtures/open-test-server.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const tokens = { ann: "token-of-ann-token-of-ann-token-of-ann", bob: "token-of-bob-token-of-bob-token-of-bob" };

describe("authentication", { timeout: 240_000 }, () => {
  let open: TestServer;
  beforeAll(async () => {
    open = await openTestServer({ script: shortScript });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  /** Uses `node:http`, because `fetch` does not allow a custom Host header. */
  async function raw(
    headers: Record<string, string>,
    { path = "/api/info", method = "GET" } = {},
  ): Promise<{ status: number; body: string }> {
    return await new Promise((resolve, reject) => {
      const sent = httpRequest({ host: "127.0.0.1", port: open.server.port, path, method, headers }, (response) => {
        let body = "";
        response.on("data", (piece: Buffer) => (body += piece.toString()));
        response.on("end", () => resolve({ status: response.statusCode!, body }));
      });
      sent.on("error", reject).end();
    });
  }
  const bearer = (): string => `Bearer ${open.server.tokens.generated}`;
  const codeOf = ({ status, body }: { status: number; body: string }): unknown[] => [
    status,
    (JSON.parse(body) as { error?: { code: string } }).error?.code ?? null,
  ];

  test("requires a token for everything except /healthz, and explains how to send it", async () => {
    expect(await open.request("/healthz", { token: null }).then((response) => response.status)).toBe(200);
    for (const path of ["/api/info", "/readyz", "/metrics", "/api/turns", "/api/openapi.json", "/artifacts/x.png", "/mcp"])
      expect([path, (await open.request(path, { token: null })).status]).toEqual([path, 401]);
    for (const token of ["wrong", `${open.server.tokens.generated}x`, ""])
      expect((await open.request("/api/info", { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    const refused = await open.request("/api/info", { token: null });
    expect(refused.headers.get("www-authenticate")).toBe('Bearer realm="sluice"');
    expect(await refused.json()).toEqual({
      error: {
        code: "UNAUTHORIZED",
        message: "The request has no valid token.",
        hint: "Programs send `Authorization: Bearer TOKEN`. In a browser, open the one-time link that `sluice serve` printed, or create one with `sluice login-link`.",
      },
    });
  });

  test("exchanges a login link once for a cookie that scripts cannot read, and redirects", async () => {
    const link = open.server.createLoginLink();
    const head = await open.request(link, { token: null, method: "HEAD" });
    expect([head.status, head.headers.get("allow"), head.headers.get("content-type")]).toEqual([
      405,
      "GET",
      "application/json; charset=utf-8",
    ]);
    for (let time = 0; time < 2; time += 1) {
      const page = await open.request(link, { token: null }); // does not use up the link
      expect([page.status, page.headers.get("set-cookie"), page.headers.get("cache-control")]).toEqual([200, null, "no-store"]);
      expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(page.headers.get("content-security-policy")).toContain("form-action 'self'; frame-ancestors 'none'");
      expect(await page.text()).toContain("as the tenant <strong>local</strong>");
    }
    const login = await open.logIn(link);
    expect([login.status, login.headers.get("location"), login.headers.get("referrer-policy")]).toEqual([303, "/", "no-referrer"]);
    const cookie = login.headers.get("set-cookie")!;
    expect(cookie).toMatch(
      new RegExp(`^sluice_session_${open.server.port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000$`),
    );
    const headers = { cookie: cookie.split(";")[0]! };
    expect((await open.request("/api/info", { headers })).status).toBe(200);

    const again = await open.logIn(link);
    expect([again.status, again.headers.get("set-cookie")]).toEqual([403, null]);
    const reopened = await open.request(link, { token: null });
    expect([reopened.status, await reopened.text()]).toEqual([403, expect.stringContaining("A link works once and expires after a day.")]);

    await open.restart();
    expect(
      (await open.request("/api/info", { headers: { cookie: headers.cookie.replace(/_\d+=/, `_${open.server.port}=`) } })).status,
    ).toBe(200);
    const renamed = { cookie: headers.cookie.replace(/_\d+=/, `_${open.server.port}=`) };
    const out = await open.request("/api/logout", { method: "POST", headers: { ...renamed, origin: open.url } });
    expect([out.status, out.headers.get("set-cookie")]).toEqual([
      204,
      `sluice_session_${open.server.port}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`,
    ]);
    expect((await open.request("/api/info", { headers: renamed })).status).toBe(401);
  });

  test("creates a login link for a request with a token", async () => {
    const { status, body } = await open.call<{ url: string }>("POST", "/api/login-links");
    expect(status).toBe(201);
    expect((await open.logIn(body.url)).status).toBe(303);
  });

  test("logs in only for the button of its own page, and says whose login that would replace", async () => {
    const { host } = new URL(open.url);
    const link = open.server.createLoginLink();
    const body = new URLSearchParams({ code: new URL(link).searchParams.get("code")! });
    for (const [headers, code] of [
      [{}, "ORIGIN_MISSING"],
      [{ origin: "https://evil.example" }, "ORIGIN_NOT_ALLOWED"],
      [{ origin: "null" }, "ORIGIN_NOT_ALLOWED"],
      [{ origin: "http://127.0.0.1:1" }, "ORIGIN_NOT_ALLOWED"],
      [{ origin: `http://${host}`, "sec-fetch-site": "cross-site" }, "ORIGIN_NOT_ALLOWED"],
      [{ "sec-fetch-site": "same-site" }, "ORIGIN_NOT_ALLOWED"],
      [{ "sec-fetch-site": "none" }, "ORIGIN_NOT_ALLOWED"],
    ] as const) {
      const refused = await open.request("/login", { token: null, method: "POST", headers: { ...headers }, body });
      expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([403, code]);
      expect(refused.headers.get("set-cookie")).toBeNull();
    }
    const large = await open.request("/login", {
      ...{ token: null, method: "POST", headers: { origin: open.url } },
      body: new URLSearchParams({ code: "x".repeat(5000) }),
    });
    expect(large.status).toBe(413);
    const login = await open.request("/login", { token: null, method: "POST", headers: { "sec-fetch-site": "same-origin" }, body });
    const cookie = login.headers.get("set-cookie")!.split(";")[0]!;
    const page = await open.request(open.server.createLoginLink(), { token: null, headers: { cookie } });
    expect(await page.text()).toContain("This browser is now logged in as <strong>local</strong>. Logging in ends that.");
  });

  test("refuses unknown hosts, as protection against DNS rebinding", async () => {
    const { port } = open.server;
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
      expect((await raw({ host, authorization: bearer() })).status).toBe(200);
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example"])
      expect([host, ...codeOf(await raw({ host, authorization: bearer() }))]).toEqual([host, 421, "HOST_NOT_ALLOWED"]);
    for (const host of ["localhost@evil.example", "evil.example/127.0.0.1"])
      expect((await raw({ host, authorization: bearer() })).status).toBe(400);
    expect(codeOf(await raw({ host: "evil.example" }, { path: "/login?code=x" }))).toEqual([421, "HOST_NOT_ALLOWED"]);
  });

  test("refuses requests from other pages, and requests with a cookie but without an origin", async () => {
    const host = `127.0.0.1:${open.server.port}`;
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
      expect([origin, ...codeOf(await raw({ host, origin, authorization: bearer() }))]).toEqual([origin, 403, "ORIGIN_NOT_ALLOWED"]);
    const link = await open.call<{ url: string }>("POST", "/api/login-links");
    const cookie = (await open.logIn(link.body.url)).headers.get("set-cookie")!.split(";")[0]!;
    const post = { path: "/api/login-links", method: "POST" };
    expect(codeOf(await raw({ host, cookie }, post))).toEqual([403, "ORIGIN_MISSING"]);
    expect((await raw({ host, cookie, origin: `http://${host}` }, post)).status).toBe(201);
  });

  test("uses the configured public address behind a proxy and ignores X-Forwarded headers", async () => {
    await open.restart({ script: shortScript, configuration: { server: { publicUrl: "https://sluice.example:8443" } } });
    const { port } = open.server;
    const headers = { authorization: bearer(), "x-forwarded-proto": "https", "x-forwarded-host": "evil.example" };
    for (const host of ["sluice.example:8443", `127.0.0.1:${port}`]) {
      const { status, body } = await raw({ ...headers, host, origin: "https://sluice.example:8443" });
      expect([host, status, (JSON.parse(body) as { mcpUrl: string }).mcpUrl]).toEqual([host, 200, "https://sluice.example:8443/mcp"]);
    }
    expect(codeOf(await raw({ ...headers, host: "sluice.example:8443", origin: "https://evil.example" }))).toEqual([
      403,
      "ORIGIN_NOT_ALLOWED",
    ]);
    const { body } = await open.call<{ url: string }>("POST", "/api/login-links");
    for (const link of [body.url, open.server.createLoginLink()]) {
      expect(link).toMatch(/^https:\/\/sluice\.example:8443\/login\?code=/);
      const login = await open.logIn(link);
      expect(login.headers.get("set-cookie")).toMatch(/; HttpOnly; SameSite=Strict; Max-Age=2592000; Secure$/);
    }
    expect(JSON.parse(open.server.snippet)).toMatchObject({ mcpServers: { sluice: { url: "https://sluice.example:8443/mcp" } } });
    await open.restart();
    expect(codeOf(await raw({ ...headers, host: "sluice.example:8443" }))).toEqual([421, "HOST_NOT_ALLOWED"]);
    const plain = JSON.parse((await raw({ ...headers, host: `localhost:${open.server.port}` })).body) as { mcpUrl: string };
    expect(plain.mcpUrl).toBe(`http://localhost:${open.server.port}/mcp`);
  });

  test("refuses bodies that are not JSON or too large", async () => {
    const send = async (type: string, body: string): Promise<unknown[]> => {
      const response = await open.request("/api/turns", { method: "POST", headers: { "content-type": type }, body });
      return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
    };
    expect(await send("text/plain", '{"question":"x"}')).toEqual([415, "CONTENT_TYPE_WRONG"]);
    expect(await send("application/json", "{")).toEqual([400, "REQUEST_INVALID"]);
    expect(await send("application/json", JSON.stringify({ question: "x".repeat(1024 * 1024) }))).toEqual([413, "BODY_TOO_LARGE"]);
  });

  test("shows a browser that is not logged in how to log in, on a page without scripts", async () => {
    const page = await open.request("/", { token: null });
    expect([page.status, page.headers.get("content-type")]).toEqual([401, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src/);
    expect(await page.text()).toContain("Open the one-time link that <code>sluice serve</code> printed");
  });

  test("logs no tokens, cookies, login codes or bodies", async () => {
    const link = open.server.createLoginLink();
    const code = new URL(link).searchParams.get("code")!;
    await open.logIn(link);
    await open.call("POST", "/api/turns", { question: "Something private.", wait: true });
    const log = open.log.join("");
    for (const secret of [code, open.server.tokens.generated!, "sluice_session_", "Something private"]) expect(log).not.toContain(secret);
    expect(log).toContain('"event":"request","method":"POST","path":"/login","status":303');
  });
});

describe("tenants", { timeout: 240_000 }, () => {
  let open: TestServer;
  beforeAll(async () => {
    const auth = {
      tokens: Object.entries(tokens).map(([tenant, token]) => ({ tenant, sha256: sha256(token), operator: tenant === "ann" })),
    };
    open = await openTestServer({ script: plainScript, configuration: { auth }, token: tokens.ann });
  });
  afterAll(() => open[Symbol.asyncDispose]());

  test("never see each other's conversations, turns, artifacts or data", async () => {
    const { body } = await open.call<{ turnId: string; result: { artifacts: { url: string }[]; dataset: { publicDataUrl: string } } }>(
      "POST",
      "/api/turns",
      {
        question: "What is the mean?",
        conversationId: "shared-id",
        wait: true,
      },
    );
    const image = body.result.artifacts[0]!.url;
    const paths = [
      `/api/turns/${body.turnId}`,
      `/api/turns/${body.turnId}/events`,
      "/api/conversations/shared-id",
      "/api/conversations/shared-id/aliases",
      "/api/conversations/shared-id/aliases/get_prices_1/rows",
      "/api/conversations/shared-id/tables/get_prices_1.csv",
      image,
      body.result.dataset.publicDataUrl,
      body.result.dataset.publicDataUrl.replace(".json", "/tables/get_prices_1.csv"),
    ];
    for (const path of paths) expect([path, (await open.request(path)).status]).toEqual([path, 200]);
    for (const path of paths) expect([path, (await open.request(path, { token: tokens.bob })).status]).toEqual([path, 404]);
    const lists = ["/api/turns", "/api/conversations", "/api/conversations?q=mean"];
    for (const path of lists) {
      const listed = (await (await open.request(path, { token: tokens.bob })).json()) as Record<string, unknown[]>;
      expect([path, Object.values(listed)[0]]).toEqual([path, []]);
    }
    const json = { "content-type": "application/json" };
    const stop = await open.request(`/api/turns/${body.turnId}/stop`, { method: "POST", token: tokens.bob, headers: json });
    const remove = await open.request(`/api/turns/${body.turnId}`, { method: "DELETE", token: tokens.bob });
    const cell = { method: "POST", token: tokens.bob, headers: json, body: JSON.stringify({ turnId: body.turnId, cell: 1, code: "1" }) };
    expect([stop.status, remove.status, (await open.request("/api/cells", cell)).status]).toEqual([404, 404, 404]);
  });

  test("can use the same conversation id for different conversations", async () => {
    const ask = { question: "Mine?", conversationId: "shared-id", wait: true };
    const headers = { "content-type": "application/json" };
    const mine = await open.request("/api/turns", { method: "POST", token: tokens.bob, headers, body: JSON.stringify(ask) });
    expect(mine.status).toBe(200);
    const { messages } = (await (await open.request("/api/conversations/shared-id", { token: tokens.bob })).json()) as {
      messages: unknown[];
    };
    expect(messages).toHaveLength(2);
  });

  test("cannot see numbers of all tenants unless they are operators", async () => {
    expect((await open.request("/api/ops")).status).toBe(200);
    const refused = await open.request("/api/ops", { token: tokens.bob });
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([403, "OPERATORS_ONLY"]);
    expect(open.server.tenants).toEqual(["ann", "bob"]);
    expect(open.server.tokens.generated).toBeNull();
  });

  test("cannot see numbers of all tenants in a browser unless they are operators", async () => {
    const cookies = await Promise.all(
      open.server.tenants.map(async (tenant) => {
        const login = await open.logIn(open.server.createLoginLink(tenant));
        return login.headers.get("set-cookie")!.split(";")[0]!;
      }),
    );
    const ask = async (cookie: string, path: string, method = "GET"): Promise<unknown> => {
      const response = await open.request(path, { method, headers: { cookie, origin: open.url } });
      const body = await response.text();
      return response.status === 200 ? 200 : (JSON.parse(body) as { error: { code: string } }).error.code;
    };
    const [ann, bob] = cookies as [string, string];
    for (const path of ["/metrics", "/api/ops"]) expect([await ask(ann, path), await ask(bob, path)]).toEqual([200, "OPERATORS_ONLY"]);
    expect(await ask(bob, "/api/ops/self-test", "POST")).toBe("OPERATORS_ONLY");
    expect((await open.request("/metrics", { token: tokens.bob })).status).toBe(403);
    const info = (await (await open.request("/api/info", { headers: { cookie: bob } })).json()) as { tenant: string; isOperator: boolean };
    expect([info.tenant, info.isOperator]).toEqual(["bob", false]);
  });
});

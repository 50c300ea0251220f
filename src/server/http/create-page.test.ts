import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import type { Principal } from "./authenticator.ts";
import { createPage } from "./create-page.ts";

const script = "export const answer = 42;\n".repeat(100);
const principal: Principal = { tenant: "default", subject: null, isOperator: true, via: "cookie" };

describe("createPage", () => {
  let directory: string;
  let page: ReturnType<typeof createPage>;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-create-page-"));
    const assets = path.join(directory, "web", "assets");
    mkdirSync(assets, { recursive: true });
    writeFileSync(path.join(directory, "secret.js"), "secret");
    writeFileSync(path.join(directory, "web", "index.html"), "<!doctype html>");
    writeFileSync(path.join(assets, "a.js"), script);
    writeFileSync(path.join(assets, "a.js.br"), brotliCompressSync(script));
    writeFileSync(path.join(assets, "a.js.gz"), gzipSync(script));
    writeFileSync(path.join(assets, "plain.svg"), "<svg/>");
    page = createPage({
      directory: path.join(directory, "web"),
      server: { facts: [["driver", "gvisor"]], snippet: "{}" },
    });
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const get = (pathname: string, headers: Record<string, string> = {}): Promise<Response> =>
    page(new Request(`http://localhost${pathname}`, { headers }), principal);

  test.each([
    ["gzip, deflate, br, zstd", "br"],
    ["gzip, deflate", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["*", "br"],
    ["*;q=0", null],
    ["identity", null],
    ["", null],
  ])("serves a client that accepts %j with the encoding %s", async (accepted, encoding) => {
    const answer = await get("/assets/a.js", { "accept-encoding": accepted });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const text = encoding === "br" ? brotliDecompressSync(bytes) : encoding === "gzip" ? gunzipSync(bytes) : bytes;
    expect([answer.headers.get("content-encoding"), answer.headers.get("vary"), answer.headers.get("content-type")]).toEqual([
      encoding,
      "accept-encoding",
      "text/javascript; charset=utf-8",
    ]);
    expect(text.toString()).toBe(script);
  });

  test("serves a file uncompressed if the build has no compressed one", async () => {
    const answer = await get("/assets/plain.svg", { "accept-encoding": "br" });
    expect([await answer.text(), answer.headers.get("content-encoding"), answer.headers.get("vary")]).toEqual([
      "<svg/>",
      null,
      "accept-encoding",
    ]);
  });

  test("gives each encoding its own ETag and answers 304 to a client that has it", async () => {
    const etags = await Promise.all(
      ["br", "gzip", "identity"].map(
        async (encoding) => (await get("/assets/a.js", { "accept-encoding": encoding })).headers.get("etag") ?? "",
      ),
    );
    expect(new Set(etags).size).toBe(3);
    const again = await get("/assets/a.js", { "accept-encoding": "br", "if-none-match": etags[0] ?? "" });
    expect([again.status, again.headers.get("vary"), again.headers.get("etag")]).toEqual([304, "accept-encoding", etags[0]]);
    expect((await get("/assets/a.js", { "accept-encoding": "gzip", "if-none-match": etags[0] ?? "" })).status).toBe(200);
  });

  test("allows only scripts, styles and images of its own", async () => {
    expect((await get("/c/some-conversation")).headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
  });

  test.each(["/assets/../../secret.js", "/assets/%2e%2e/%2e%2e/secret.js", "/..%2fsecret.js", "/assets/none.js", "/api/none"])(
    "does not serve files that are missing or outside of the directory: %s",
    async (pathname) => {
      await expect(get(pathname)).rejects.toMatchObject({ code: "NOT_FOUND" });
    },
  );

  test("requires a login", async () => {
    expect((await page(new Request("http://localhost/assets/a.js"), null)).status).toBe(401);
  });
});

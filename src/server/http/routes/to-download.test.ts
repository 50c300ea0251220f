import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { watchBody } from "./route.ts";
import { listen } from "../open-server.ts";
import { toDownload } from "./to-download.ts";

describe("toDownload", () => {
  let server: Server;
  let url: string;
  let closed: string[] = [];
  let over: string[] = [];
  const printed = vi.spyOn(console, "error").mockImplementation(() => {});
  beforeAll(async () => {
    server = createAdaptorServer({
      async fetch(request) {
        const { pathname } = new URL(request.url);
        const bytes = pathname.startsWith("/known") ? 100 : null;
        async function* stream(): AsyncGenerator<Uint8Array> {
          try {
            if (pathname.endsWith("at-once")) throw new Error("it cannot be read");
            yield Buffer.from("a,b\n");
            if (pathname.endsWith("later")) throw new Error("it cannot be read further");
            yield Buffer.from("1,2\n");
          } finally {
            closed.push(pathname);
          }
        }
        const download = { fileName: "x.csv", contentType: "text/csv", bytes, stream };
        const response = await toDownload(request, download, { isAttachment: true }).catch(() => new Response("no", { status: 422 }));
        return watchBody(response, () => over.push(pathname));
      },
    }) as Server;
    url = `http://127.0.0.1:${await listen(server, { host: "127.0.0.1", port: 0 })}`;
  });
  beforeEach(() => {
    closed = [];
    over = [];
  });
  afterAll(() => {
    printed.mockRestore();
    server.closeAllConnections();
    server.close();
  });

  test("streams a file and closes its source, also for HEAD", async () => {
    expect(await (await fetch(`${url}/whole`)).text()).toBe("a,b\n1,2\n");
    const head = await fetch(`${url}/head`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), closed]).toEqual([200, "text/csv", ["/whole", "/head"]]);
    expect(over).toEqual(closed);
  });

  test.each(["/at-once", "/known-at-once"])("rejects if the first chunk cannot be read (%s)", async (path) => {
    expect([(await fetch(`${url}${path}`)).status, closed]).toEqual([422, [path]]);
  });

  test.each(["/later", "/known-later"])("breaks the connection if a later chunk cannot be read (%s)", async (path) => {
    const read = fetch(`${url}${path}`).then((response) => response.text());
    await expect(read).rejects.toThrow(/fetch failed|terminated/);
    expect(closed).toEqual([path]);
  });
});

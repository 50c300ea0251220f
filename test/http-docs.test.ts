import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { serveUsage } from "../src/cli/commands/serve.ts";
import { turnDocumentSchema } from "../src/protocol/http-turns.ts";
import type { ServerParts } from "../src/server/http/open-parts.ts";
import { allRoutes } from "../src/server/http/routes/all-routes.ts";
import { openTestServer, shortScript } from "./fixtures/open-test-server.ts";

const page = readFileSync(path.join(import.meta.dirname, "../docs/server.md"), "utf8");

test("docs/server.md names only routes that exist", () => {
  const routes = new Set(allRoutes({} as ServerParts).map(({ method, path: pathname }) => `${method.toUpperCase()} ${pathname}`));
  const named = [...page.matchAll(/^\| `([A-Z]+ \/[^`]*)` \|/gm)].map(([, route]) => route!);
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((route) => !routes.has(route))).toEqual([]);
});

test("docs/server.md names every option of the command", () => {
  for (const option of serveUsage.match(/--[a-z-]+/g)!) expect(page).toContain(option);
});

test("the example of docs/server.md asks a question", { timeout: 240_000 }, async () => {
  await using open = await openTestServer({ script: shortScript });
  const [, example] = /^```sh\n(.*?)^```$/ms.exec(page)!;
  const script = example!.replace("http://127.0.0.1:8787", open.url);
  const { stdout } = await promisify(execFile)("bash", ["-c", script], {
    env: { ...process.env, TOKEN: open.server.tokens.generated! },
  });
  expect(turnDocumentSchema.parse(JSON.parse(stdout))).toMatchObject({ status: "ended", result: { answer: "Forty-two." } });
});

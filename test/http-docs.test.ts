import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { serveUsage } from "../src/cli/commands/serve.ts";
import { allRoutes } from "../src/server/http/routes/all-routes.ts";
import type { ServerParts } from "../src/server/http/open-parts.ts";

const page = readFileSync(path.join(import.meta.dirname, "../docs/server.md"), "utf8");

test("docs/server.md names routes that there are, and only those", () => {
  const routes = new Set(allRoutes({} as ServerParts).map(({ method, path: at }) => `${method.toUpperCase()} ${at}`));
  const named = [...page.matchAll(/^\| `([A-Z]+ \/[^`]*)` \|/gm)].map(([, route]) => route!);
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((route) => !routes.has(route))).toEqual([]);
});

test("docs/server.md names every option of the command", () => {
  for (const option of serveUsage.split("\n\n")[0]!.match(/--[a-z-]+/g)!) expect(page).toContain(option);
});

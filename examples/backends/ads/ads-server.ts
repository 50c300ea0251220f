/** The sample ads backend as a process: `node ads-server.ts [--seed N]` on stdio, or with `--http PORT` on loopback (0: any free port). */
import { parseArgs } from "node:util";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createAdsBackend } from "./create-ads-backend.ts";
import { serveHttp } from "../serve-http.ts";

const { values } = parseArgs({ options: { seed: { type: "string", default: "7" }, http: { type: "string" } } });
const { createServer } = createAdsBackend({ seed: Number(values.seed) });

if (values.http === undefined) {
  serveStdio(createServer);
} else {
  const { url } = await serveHttp(createMcpHandler(createServer).fetch, Number(values.http));
  console.log(url);
}

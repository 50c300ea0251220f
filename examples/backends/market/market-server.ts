/** The sample market backend as a process: `node market-server.ts [--seed N]` on stdio, or with `--http PORT` on loopback (0: any free port). */
import { parseArgs } from "node:util";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { serveHttp } from "../serve-http.ts";
import { createMarketBackend } from "./create-market-backend.ts";

const { values } = parseArgs({ options: { seed: { type: "string", default: "7" }, http: { type: "string" } } });
const { createServer } = createMarketBackend({ seed: Number(values.seed) });

if (values.http === undefined) {
  serveStdio(createServer);
} else {
  const { url } = await serveHttp(createMcpHandler(createServer).fetch, Number(values.http));
  console.log(url);
}

import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { isOrigin } from "../../config/configuration-schema.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { createLog, logLevels, redirectConsole } from "../../server/http/create-log.ts";
import { openServer, type RunningServer } from "../../server/http/open-server.ts";
import { wrongUsage } from "../terminal.ts";

export const serveUsage = `Usage: sluice serve [--port 8787] [--host 127.0.0.1] [--config FILE] [--model MODEL] [--no-auth]
                    [--public-url https://HOST] [--log-level error|warn|info|debug] [--log-format json|text]

Serves the chat page, the API and MCP over HTTP. Without a configuration: a bundled sample of made-up market data, and a model that needs no key.
A token is always needed. The browser gets in by the one-time link that is printed; programs send the token as a bearer.
--public-url is what clients reach it by behind a proxy with TLS (server.publicUrl): links say it, and cookies go over TLS only.
--no-auth lets in everybody who can reach the port, on this machine only: any program and any user of it can then read and run everything.
Ends on SIGTERM or Ctrl-C: turns that run may come to an end (server.drainMs), then nothing is left behind.
`;

export async function serveCommand(args: string[], signal: AbortSignal): Promise<number> {
  const options = parse(args);
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false }); // what a provider cannot do is the plan's affair, not a person's
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: options.config, workingDirectory: process.cwd(), environment });
  if (options.isOpen && (options.publicUrl ?? loaded.configuration.server.publicUrl) !== undefined)
    throw wrongUsage(
      "serve",
      "--no-auth would let in everybody whom the public address (server.publicUrl) lets in; it is for this machine only.",
    );
  const say = (text: string): void => void process.stdout.write(text);
  say(`configuration: ${loaded.path ?? "no sluice.config.json was found; using the bundled sample"}\n`);
  const log = createLog({ ...options, write: (line) => void process.stderr.write(line) });
  redirectConsole(console, log);
  await using server = await openServer({ ...options, loaded, environment, workingDirectory: process.cwd(), log, signal });
  say(describe(server, options.isOpen));
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await server.close();
  return 0;
}

function parse(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: "string", default: "127.0.0.1" },
      port: { type: "string", default: "8787" },
      config: { type: "string" },
      model: { type: "string" },
      "public-url": { type: "string" },
      "no-auth": { type: "boolean", default: false },
      "log-level": { type: "string", default: "info" },
      "log-format": { type: "string", default: process.stderr.isTTY ? "text" : "json" },
    },
  });
  const { host, config, model, "no-auth": isOpen, "public-url": publicUrl } = values;
  const port = /^\d{1,5}$/.test(values.port) ? Number(values.port) : Number.NaN;
  if (!(port <= 65_535)) throw wrongUsage("serve", `--port must be a number up to 65535, and is ${JSON.stringify(values.port)}.`);
  const level = logLevels.find((one) => one === values["log-level"]);
  if (level === undefined) throw wrongUsage("serve", `--log-level must be one of ${logLevels.join(", ")}.`);
  const format = (["json", "text"] as const).find((one) => one === values["log-format"]);
  if (format === undefined) throw wrongUsage("serve", "--log-format must be json or text.");
  if (isOpen && !isLoopback(host))
    throw wrongUsage("serve", `--no-auth would let in everybody who can reach ${host}; it is for 127.0.0.1 only.`);
  if (publicUrl !== undefined && !isOrigin(publicUrl))
    throw wrongUsage("serve", `--public-url must be as https://sluice.example, and is ${JSON.stringify(publicUrl)}.`);
  return { host, port, config, model, isOpen, publicUrl, level, format };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** What a person needs to go on. It is not the log: the log never has a token. */
function describe({ url, publicUrl, driver, model, tokens, loginLinks, snippet }: RunningServer, isOpen: boolean): string {
  const links = loginLinks.map(({ tenant, url: link }) => `  ${loginLinks.length > 1 ? `${tenant}: ` : ""}${link}`);
  return [
    `address: ${publicUrl === null ? url : `${publicUrl} (listens on ${url})`}`,
    `sandbox: ${driver}`,
    `model: ${model.name ?? `none. ${model.problem}`}`,
    ...(isOpen
      ? ["", "--no-auth: NO TOKEN IS NEEDED. Every program and every user of this machine can read and run everything here.", `  ${url}/`]
      : ["", "Open in a browser (works once):", ...links]),
    ...(tokens.generated === null ? [] : ["", `For programs: Authorization: Bearer ${tokens.generated}`]),
    "",
    "For a desktop client, into its configuration:",
    snippet,
    "",
    "",
  ].join("\n");
}

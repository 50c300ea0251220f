import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { isOrigin } from "../../config/configuration-schema.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { demoOnlyMessage, howToConnect } from "../../protocol/connect-model.ts";
import { createLog, logLevels, redirectConsole } from "../../server/http/create-log.ts";
import { openServer, type RunningServer } from "../../server/http/open-server.ts";
import { wrongUsage } from "../terminal.ts";

export const serveUsage = `Usage: sluice serve [OPTIONS]

Serves the chat page, the HTTP API and MCP. Without a configuration, it uses a bundled sample with
made-up market data. Without a model, a demo answers one question about that sample.
In a browser, open the one-time link that the server prints in a terminal, or run \`sluice login-link\`.
Programs send the printed token.

  --port N             port to listen on; default: 8787
  --host ADDRESS       address to listen on; default: 127.0.0.1, which only this machine can reach
  --config FILE        use this configuration
  --model MODEL        use this model
  --public-url URL     the address that clients use when a proxy with TLS is in front of the server
                       (server.publicUrl). It appears in links, and cookies require TLS
  --no-auth            require no token. Only for 127.0.0.1: every program and every user of this
                       machine can then read and run everything
  --log-level LEVEL    ${logLevels.join(", ")}; default: info
  --log-format FORMAT  json or text; default: text in a terminal, otherwise json

Stops on SIGTERM or Ctrl-C. Running turns get some time to finish (server.drainMs).
`;

export async function serveCommand(args: string[], signal: AbortSignal): Promise<number> {
  const options = parse(args);
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false }); // warnings about unsupported features of a provider do not help the user
  const environment = processEnvironment();
  const loaded = await loadConfiguration({ file: options.config, workingDirectory: process.cwd(), environment });
  if (options.isOpen && (options.publicUrl ?? loaded.configuration.server.publicUrl) !== undefined)
    throw wrongUsage(
      "serve",
      "--no-auth cannot be combined with a public address (server.publicUrl): everyone who can reach it would have access.",
    );
  process.stdout.write(`configuration: ${loaded.path ?? "no sluice.config.json found; using the bundled sample"}\n`);
  const log = createLog({ ...options, write: (line) => void process.stderr.write(line) });
  redirectConsole(console, log);
  await using server = await openServer({ ...options, loaded, environment, workingDirectory: process.cwd(), log, signal });
  process.stdout.write(describe(server, { ...options, isTerminal: process.stdout.isTTY }));
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
  if (!(port <= 65_535)) throw wrongUsage("serve", `--port must be a number up to 65535, not ${JSON.stringify(values.port)}.`);
  const level = logLevels.find((one) => one === values["log-level"]);
  if (level === undefined) throw wrongUsage("serve", `--log-level must be one of ${logLevels.join(", ")}.`);
  const format = (["json", "text"] as const).find((one) => one === values["log-format"]);
  if (format === undefined) throw wrongUsage("serve", "--log-format must be json or text.");
  if (isOpen && !isLoopback(host))
    throw wrongUsage("serve", `--no-auth works only with 127.0.0.1: everyone who can reach ${host} would have access.`);
  if (publicUrl !== undefined && !isOrigin(publicUrl))
    throw wrongUsage("serve", `--public-url must be an origin such as https://sluice.example, not ${JSON.stringify(publicUrl)}.`);
  return { host, port, config, model, isOpen, publicUrl, level, format };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

interface DescribeOptions {
  readonly isOpen: boolean;
  readonly isTerminal: boolean;
  readonly config?: string | undefined;
}

/** Tells the user how to connect. This is separate from the log, which never contains a token. */
function describe(server: RunningServer, options: DescribeOptions): string {
  const { url, publicUrl, driver, model, tokens, snippet } = server;
  return [
    `address: ${publicUrl === null ? url : `${publicUrl} (listening on ${url})`}`,
    `sandbox: ${driver}`,
    ...describeModel(model),
    ...describeLogin(server, options),
    ...(tokens.generated === null ? [] : ["", `For programs: Authorization: Bearer ${tokens.generated}`]),
    "",
    "For a desktop client, add this to its configuration:",
    snippet,
    "",
    "",
  ].join("\n");
}

function describeModel({ name, problem }: RunningServer["model"]): string[] {
  if (name !== null && name !== "demo") return [`model: ${name}`];
  return [`model: ${name ?? "none"}. ${problem ?? demoOnlyMessage}`, "", howToConnect];
}

/** A link is printed to a terminal only: other output is often kept as a log. */
function describeLogin({ url, tenants, createLoginLink }: RunningServer, { isOpen, isTerminal, config }: DescribeOptions): string[] {
  if (isOpen)
    return [
      "",
      "--no-auth: NO TOKEN IS REQUIRED. Every program and every user of this machine can read and run everything here.",
      `  ${url}/`,
    ];
  const command = `sluice login-link${config === undefined ? "" : ` --config ${config}`}`;
  if (!isTerminal) return ["", `To log in with a browser, run on this machine: ${command}`];
  const others = tenants.length === 1 ? [] : [`For another tenant: ${command} --tenant NAME`];
  return ["", `Open in a browser (works once)${tenants.length === 1 ? "" : `, as ${tenants[0]}`}:`, `  ${createLoginLink()}`, ...others];
}

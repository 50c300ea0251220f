import { parseArgs } from "node:util";
import { processEnvironment } from "../../config/environment.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { createLoginLink } from "../../server/http/login-link.ts";
import { print, wrongUsage } from "../terminal.ts";

export const loginLinkUsage = `Usage: sluice login-link [OPTIONS]

Prints a link that logs a browser in to the running \`sluice serve\`. It works once, within a day.
Run it as the user that runs the server, with the same configuration.

  --tenant NAME   log in as this tenant of auth.tokens; default: the first
  --config FILE   use this configuration

Exit status: 0 printed, 2 wrong usage, unknown tenant or no running server.
`;

export async function loginLinkCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { tenant: { type: "string" }, config: { type: "string" } },
  });
  if (positionals.length > 0) throw wrongUsage("login-link", `unexpected argument: ${positionals.join(" ")}`);
  const environment = processEnvironment();
  const { configuration } = await loadConfiguration({ file: values.config, workingDirectory: process.cwd(), environment });
  const { artifacts, auth } = configuration;
  await print(`${createLoginLink({ directory: artifacts.directory, tokens: auth.tokens, tenant: values.tenant }).url}\n`);
  return 0;
}

import { parseArgs } from "node:util";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { openConfigured } from "../../config/open-configured.ts";
import type { DataFiles } from "../../data/conversation-data.ts";
import { openDataFiles } from "../../data/open-data-files.ts";
import { createTables } from "../../data/tables/create-tables.ts";
import { dataFileEndings } from "../../protocol/data-files.ts";
import { serveMcpStdio } from "../../server/mcp/serve-mcp-stdio.ts";
import { toTerminal, wrongUsage } from "../terminal.ts";

export const mcpUsage: string = `Usage: sluice mcp [--config FILE] [--data PATH]… [--probes]

An MCP server on standard input and output, for desktop assistants, editors and other clients: sandboxed Python over the data it is given.
--data gives a file or a folder (${dataFileEndings.join(", ")}), read-only, each as an alias; it can be given several times.
--config names a configuration; only the file that is named is read. Its mcpServers are what execute can call, and those with "expose": true are
passed through to the client. --probes writes the probe lines of tools and cells to standard error.
Standard output is the protocol's alone. Exit status: 0 when the client closed the connection or at a signal, 2 wrong usage.
`;

export async function mcpCommand(args: string[], signal: AbortSignal): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: "string" },
      data: { type: "string", multiple: true, default: [] },
      probes: { type: "boolean", default: false },
    },
  });
  if (positionals.length > 0)
    throw wrongUsage("mcp", `${JSON.stringify(positionals[0])} is no option; files and folders are given with --data PATH.`);
  const environment = processEnvironment();
  const workingDirectory = process.cwd();
  const loaded = await loadConfiguration({ file: values.config ?? null, workingDirectory, environment });
  const onProbe = values.probes ? { onProbe: say } : {};
  await using configured = openConfigured({ loaded, environment, workingDirectory, ...onProbe });
  const { runtime } = configured;
  const files = values.data.length === 0 ? undefined : await openDataFiles({ paths: values.data, maxFileBytes: runtime.limits.inputBytes });
  if (files !== undefined) sayData(files);
  await using tables = createTables({ openCellSession: runtime.openCellSession, gate: runtime.gate });
  // Gets warm while the client says hello. Without a sandbox the client is served all the same, and each cell says what is missing.
  runtime.pool(signal).then(
    ({ driver }) => say(`sluice mcp: sandbox: ${driver.name}`),
    (error: unknown) => signal.aborted || say(`sluice mcp: no sandbox: ${error instanceof Error ? error.message : String(error)}`),
  );
  await serveMcpStdio({ ...configured, tables, files, ...onProbe }, { input: process.stdin, output: process.stdout, signal, onError });
  return 0;
}

function sayData(files: DataFiles): void {
  say(`sluice mcp: data: ${files.files().length} files`);
  for (const { path, why } of files.leftOut()) say(`sluice mcp: left out: ${path}: ${why}`);
}

function onError(error: Error): void {
  say(`sluice mcp: ${error.message}`);
}

/** Standard output is the protocol's. */
function say(line: string): void {
  process.stderr.write(`${toTerminal(line)}\n`);
}

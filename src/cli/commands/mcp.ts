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

export const mcpUsage = `Usage: sluice mcp [OPTIONS]

Runs an MCP server on standard input and output, for desktop assistants, editors and other clients.
It gives the client's model sandboxed Python over the data that you choose.

  --data PATH     give a file or a folder to the model, read-only; repeatable
                  (${dataFileEndings.join(", ")}).
                  How a CSV or TSV file is written is recognized, or given with the file:
                  'sales.csv?delimiter=%3B&decimal=%2C&encoding=windows-1252'
  --config FILE   use this configuration; without it, no configuration is read. The tool "execute"
                  can call the tools of its mcpServers. Servers with "expose": true are also offered
                  to the client directly
  --probes        print probes (one log line per event of tools and cells) to standard error

Standard output carries only the protocol; messages go to standard error.

Example: sluice mcp --data ~/reports

Exit status: 0 when the client closes the connection or on a signal, 2 wrong usage.
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
    throw wrongUsage("mcp", `unexpected argument ${JSON.stringify(positionals[0])}. Use --data PATH for files and folders.`);
  const environment = processEnvironment();
  const workingDirectory = process.cwd();
  const loaded = await loadConfiguration({ file: values.config ?? null, workingDirectory, environment });
  const onProbe = values.probes ? log : undefined;
  await using configured = openConfigured({ loaded, environment, workingDirectory, onProbe });
  const { runtime } = configured;
  const files = values.data.length === 0 ? undefined : await openDataFiles({ paths: values.data, maxFileBytes: runtime.limits.inputBytes });
  if (files !== undefined) logData(files);
  await using tables = createTables({ openCellSession: runtime.openCellSession, gate: runtime.gate });
  // Warm up during the handshake. Without a sandbox the server still runs, and each cell reports what is missing.
  runtime.pool(signal).then(
    ({ driver }) => log(`sluice mcp: sandbox: ${driver.name}`),
    (error: unknown) => signal.aborted || log(`sluice mcp: no sandbox: ${error instanceof Error ? error.message : String(error)}`),
  );
  await serveMcpStdio({ ...configured, tables, files, onProbe }, { input: process.stdin, output: process.stdout, signal, onError });
  return 0;
}

function logData(files: DataFiles): void {
  log(`sluice mcp: data: ${files.files().length} files`);
  for (const { path, why } of files.leftOut()) log(`sluice mcp: left out: ${path}: ${why}`);
}

function onError(error: Error): void {
  log(`sluice mcp: ${error.message}`);
}

/** Logs to standard error, because standard output carries the protocol. */
function log(line: string): void {
  process.stderr.write(`${toTerminal(line)}\n`);
}

import path from "node:path";
import { parseArgs } from "node:util";
import { processEnvironment } from "../../config/environment.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { openHistory } from "../../history/open-history.ts";
import type { QuarantinedRow } from "../../history/quarantine.ts";
import { formatBytes } from "../progress-printer.ts";
import { print, wrongUsage } from "../terminal.ts";

export const quarantineUsage = `Usage: sluice quarantine [OPTIONS]

Lists stored entries that \`sluice serve\` could not read and has put aside: damaged events, results,
evidence, uploads and references to files. Their turns are shown without them, with a gap that says so.
A server can keep running.

  --delete        delete the entries that are listed, for good
  --json          print one JSON document
  --config FILE   use this configuration
`;

export async function quarantineCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { delete: { type: "boolean", default: false }, json: { type: "boolean", default: false }, config: { type: "string" } },
  });
  if (positionals.length > 0) throw wrongUsage("quarantine", `unexpected argument: ${positionals.join(" ")}`);
  const environment = processEnvironment();
  const { configuration } = await loadConfiguration({ file: values.config, workingDirectory: process.cwd(), environment });
  using history = openHistory({ file: path.join(configuration.artifacts.directory, "history.sqlite") });
  const { rows, deleted } = history.inTransaction(() => {
    const listed = history.quarantine.list();
    return { rows: listed, deleted: values.delete ? history.quarantine.clear() : 0 };
  });
  await print(values.json ? `${JSON.stringify({ rows, deleted }, null, 2)}\n` : describe(rows, deleted));
  return 0;
}

function describe(rows: readonly QuarantinedRow[], deleted: number): string {
  if (rows.length === 0) return "Nothing was put aside: all stored entries that were read could be read.\n";
  const lines = rows.map(({ tenant, conversationId, turnId, kind, name, reason, at, bytes }) => {
    const place = turnId === null ? `conversation ${conversationId}` : `conversation ${conversationId}, turn ${turnId}`;
    return `${at} ${tenant}, ${place}: ${kind} ${name} ${reason} (${formatBytes(bytes)})`;
  });
  const end = deleted > 0 ? `Deleted: ${deleted}.` : "To delete them: sluice quarantine --delete";
  return `${[...lines, end].join("\n")}\n`;
}

import path from "node:path";
import { parseArgs } from "node:util";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import { openHistory } from "../../history/open-history.ts";
import { configuredTenants } from "../../server/http/authenticator.ts";
import { prune, type Pruned } from "../../server/http/prune.ts";
import { createTenantStores } from "../../server/http/create-tenant-stores.ts";
import { formatBytes } from "../progress-printer.ts";
import { wrongUsage } from "../terminal.ts";

export const pruneUsage = `Usage: sluice prune [OPTIONS]

Removes old data from the data directory, in this order:
  1. conversations, and artifacts of MCP clients, that were not used for too long
  2. the oldest conversations of each tenant that stores too much
  3. files that nothing refers to
Figures and datasets of sluice ask and sluice mcp follow the same rules. Data that another turn
still uses is kept. A server can keep running.

  --older-than DAYS    remove what was not used for this many days; default: server.retention.days
  --max-bytes BYTES    most storage per tenant; default: server.retention.maxBytes
  --dry-run            print what would be removed, and remove nothing
  --json               print one JSON document
  --config FILE        use this configuration
`;

export async function pruneCommand(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      "older-than": { type: "string" },
      "max-bytes": { type: "string" },
      "dry-run": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      config: { type: "string" },
    },
  });
  const environment = processEnvironment();
  const { configuration } = await loadConfiguration({ file: values.config, workingDirectory: process.cwd(), environment });
  const { directory } = configuration.artifacts;
  const { retention } = configuration.server;
  using history = openHistory({ file: path.join(directory, "history.sqlite") });
  const uploads = createUploadStore({ directory: path.join(directory, "uploads") });
  const pruned = await prune({
    directory,
    history,
    storesOf: createTenantStores({ directory, history, uploads }),
    tenants: configuredTenants(configuration.auth.tokens),
    retention: {
      days: toNumber("--older-than", values["older-than"]) ?? retention.days,
      maxBytes: toNumber("--max-bytes", values["max-bytes"]) ?? retention.maxBytes,
    },
    isDryRun: values["dry-run"],
  });
  process.stdout.write(values.json ? `${JSON.stringify(pruned, null, 2)}\n` : describe(pruned, directory));
  return 0;
}

function describe(pruned: readonly Pruned[], directory: string): string {
  if (pruned.length === 0) return `No data is stored in ${directory}.\n`;
  return pruned
    .map(
      ({ tenant, expired, overQuota, orphans, bytesBefore, bytesAfter }) =>
        `${tenant ?? "sluice ask and sluice mcp"}: ${expired} too old, ${overQuota} over the quota, ${orphans} unused files; ${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} after\n`,
    )
    .join("");
}

function toNumber(flag: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number) && number >= 0) return number;
  throw wrongUsage("prune", `${flag} must be a number of at least 0, not ${JSON.stringify(text)}.`);
}

import path from "node:path";
import { parseArgs } from "node:util";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { processEnvironment } from "../../config/environment.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import { openHistory } from "../../history/open-history.ts";
import { configuredTenants } from "../../server/http/authenticator.ts";
import { prune, type Pruned } from "../../server/http/prune.ts";
import { createTenantStores } from "../../server/http/create-tenant-stores.ts";
import { wrongUsage } from "../terminal.ts";

export const pruneUsage = `Usage: sluice prune [--older-than DAYS] [--max-bytes BYTES] [--dry-run] [--json] [--config FILE]

Removes conversations, and artifacts of MCP clients, that were not used for so long (server.retention.days, 30 unless told), then the oldest of each tenant
that keeps more than it may (server.retention.maxBytes), then files that nothing refers to; and by the same rules figures and datasets of sluice ask and
sluice mcp. What a removed turn shares with another stays. A server may go on
running meanwhile. --dry-run says what would be removed, and removes nothing.
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
  if (pruned.length === 0) return `Nothing is kept in ${directory}.\n`;
  return pruned
    .map(
      ({ tenant, expired, overQuota, orphans, bytesBefore, bytesAfter }) =>
        `${tenant ?? "sluice ask and sluice mcp"}: ${expired} too old, ${overQuota} over the quota, ${orphans} files of nobody; ${bytesBefore} bytes before, ${bytesAfter} after\n`,
    )
    .join("");
}

function toNumber(flag: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number) && number >= 0) return number;
  throw wrongUsage("prune", `${flag} must be a number, and is ${JSON.stringify(text)}.`);
}

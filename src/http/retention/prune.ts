import type { Configuration } from "../../config/contract.ts";
import type { UploadStore } from "../../data/contract.ts";
import type { Files, History } from "../../history/contract.ts";
import type { TenantStores } from "../stores/create-tenant-stores.ts";

export interface PruneOptions {
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly uploads: UploadStore;
  readonly retention: Configuration["server"]["retention"];
  /** Says what would be removed, and removes nothing. */
  readonly isDryRun?: boolean;
  readonly now?: Date;
  readonly onRemoved?: (place: { tenant: string; id: string }) => void;
}

export interface Pruned {
  readonly tenant: string;
  /** Not used for too long. */
  readonly expired: number;
  /** The oldest of a tenant that has too much. */
  readonly overQuota: number;
  /** Files that nothing referred to. */
  readonly orphans: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

const DAY_MS = 24 * 60 * 60_000;

/** Removes what is too old, then the oldest of what is too much, then what a killed server left. A conversation that runs is left alone. */
export async function prune(options: PruneOptions): Promise<Pruned[]> {
  const pruned: Pruned[] = [];
  for (const tenant of options.history.tenants.list()) pruned.push(await pruneTenant(tenant, options));
  return pruned;
}

async function pruneTenant(tenant: string, options: PruneOptions): Promise<Pruned> {
  const { history, storesOf, uploads, retention, isDryRun = false, now = new Date(), onRemoved = () => {} } = options;
  const bytesBefore = history.references.usedBytes(tenant);
  const tooOld = new Date(now.getTime() - retention.days * DAY_MS).toISOString();
  const expired = history.conversations.unusedSince(tenant, tooOld);
  const gone: string[] = [];

  const remove = (id: string): void => {
    history.references.deleteConversation(tenant, id, (files) => {
      storesOf(tenant).remove(files);
      gone.push(...files.uploads);
    });
    onRemoved({ tenant, id });
  };
  if (!isDryRun) for (const id of expired) remove(id);

  let overQuota = 0;
  for (const id of isDryRun ? [] : history.conversations.unusedSince(tenant, now.toISOString())) {
    if (history.references.usedBytes(tenant) <= retention.maxBytes) break;
    remove(id);
    overQuota += 1;
  }

  const orphans = storesOf(tenant).orphans(retention.days * DAY_MS);
  if (!isDryRun) storesOf(tenant).remove(orphans);
  for (const sha256 of new Set(gone)) await uploads.remove({ tenant, sha256 });
  const bytesAfter = history.references.usedBytes(tenant);
  return { tenant, expired: expired.length, overQuota, orphans: countOf(orphans), bytesBefore, bytesAfter };
}

function countOf({ artifacts, datasets, evidence }: Files): number {
  return artifacts.length + datasets.length + evidence.length;
}

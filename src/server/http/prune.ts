import path from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { BlobFacts, BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { deleteBlobs } from "../../blobs/delete-blobs.ts";
import type { Configuration } from "../../config/configuration-schema.ts";
import { readLastUses } from "../../evidence/dataset/create-dataset-store.ts";
import type { FileNames, History, PrunableItem } from "../../history/history.ts";
import { configuredTenants } from "./authenticator.ts";
import type { ConversationKey } from "./conversations.ts";
import type { TenantStores } from "./create-tenant-stores.ts";
import type { ServerParts } from "./open-parts.ts";

export interface PruneOptions {
  /** The data directory: the stores of tenants, and files of commands that keep no history. */
  readonly directory: string;
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly retention: Configuration["server"]["retention"];
  /** Tenants to check besides those with rows in the history. */
  readonly tenants?: readonly string[];
  /** Reports what would be removed, and removes nothing. */
  readonly isDryRun?: boolean;
  readonly now?: Date;
  /** Conversations in use are skipped. */
  readonly isInUse?: (key: ConversationKey) => boolean;
  readonly onRemoved?: (key: ConversationKey) => void;
}

export interface Pruned {
  /** Null for files of `sluice ask` and `sluice mcp`, which have no tenant. */
  readonly tenant: string | null;
  /** Conversations, and artifacts of MCP clients, that were unused for too long. */
  readonly expired: number;
  /** The oldest ones of a tenant that exceeds its quota. */
  readonly overQuota: number;
  /** Files that no row refers to. */
  readonly orphans: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** Younger files are left alone: their row or their final name may still be written. */
const UNFINISHED_MS = HOUR_MS;

/** Prunes at once, and again every hour. A failure is logged; the next run tries again. */
export function pruneHourly(parts: Pick<ServerParts, "history" | "storesOf" | "configured" | "conversations" | "log">): Disposable {
  const { history, storesOf, configured, conversations, log } = parts;
  const { auth, server, artifacts } = configured.configuration;
  const run = async (): Promise<void> => {
    try {
      const all = await prune({
        directory: artifacts.directory,
        history,
        storesOf,
        retention: server.retention,
        tenants: configuredTenants(auth.tokens),
        isInUse: (key) => conversations.isInUse(key),
        onRemoved: (key) => conversations.invalidate(key),
      });
      for (const { tenant, expired, overQuota, orphans, bytesBefore, bytesAfter } of all)
        if (expired + overQuota + orphans > 0) log.info("pruned", { tenant, expired, overQuota, orphans, bytesBefore, bytesAfter });
    } catch (error) {
      log.error("prune_failed", { reason: (error as Error).message });
    }
  };
  void run();
  const timer = setInterval(() => void run(), HOUR_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Removes files that killed processes left behind, then what has expired, then the oldest items over the quota. Skips conversations with a running turn. */
export async function prune(options: PruneOptions): Promise<Pruned[]> {
  const { history, isDryRun = false, tenants = [] } = options;
  const pruned: Pruned[] = [];
  for (const tenant of [...new Set([...history.tenants.list(), ...tenants])].sort()) {
    const steps = pruneTenant(tenant, options);
    pruned.push(isDryRun ? history.dryRun(() => runAtOnce(steps)) : await runWithPauses(steps));
  }
  pruned.push(await pruneLooseFiles(options));
  return pruned.filter(({ bytesBefore, orphans }) => bytesBefore > 0 || orphans > 0);
}

/** Each step is atomic. Between two steps the caller may let other work run. */
function* pruneTenant(tenant: string, options: PruneOptions): Generator<void, Pruned> {
  const { history, storesOf, retention, isDryRun = false, now = new Date(), isInUse = () => false, onRemoved = () => {} } = options;
  const { references } = history;
  const stores = storesOf(tenant);
  const removeFiles = isDryRun ? () => {} : (files: FileNames) => stores.remove(files);
  const listUnusedItems = (at: Date): PrunableItem[] =>
    references.unusedSince(tenant, at.toISOString()).filter((item) => item.kind === "artifact" || !isInUse({ tenant, id: item.id }));
  const remove = (item: PrunableItem): void => {
    references.deleteItem(tenant, item, removeFiles);
    if (item.kind === "conversation") onRemoved({ tenant, id: item.id });
  };

  const bytesBefore = stores.measure()();
  const orphanMs = bytesBefore > retention.maxBytes ? UNFINISHED_MS : Math.max(retention.days * DAY_MS, UNFINISHED_MS);
  const orphans = history.inTransaction(() => {
    const found = stores.orphans(orphanMs);
    removeFiles(found);
    return found;
  });
  const measureUsedBytes = stores.measure(orphans);
  const expired = listUnusedItems(new Date(now.getTime() - retention.days * DAY_MS));
  for (const item of expired) {
    remove(item);
    yield;
  }
  let overQuota = 0;
  for (const item of listUnusedItems(now)) {
    if (measureUsedBytes() <= retention.maxBytes) break;
    remove(item);
    overQuota += 1;
    yield;
  }
  if (!isDryRun) stores.removeDrafts(UNFINISHED_MS);
  return {
    tenant,
    expired: expired.length,
    overQuota,
    orphans: Object.values(orphans).flat().length,
    bytesBefore,
    bytesAfter: measureUsedBytes(),
  };
}

function runAtOnce<Value>(steps: Generator<void, Value>): Value {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

async function runWithPauses<Value>(steps: Generator<void, Value>): Promise<Value> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await yieldToEventLoop();
  }
}

interface LooseFile extends BlobFacts {
  readonly store: BlobStore;
  /** How many files are removed together under this name. */
  readonly files: number;
}

/** Prunes the files of `sluice ask` and `sluice mcp`. They have no rows in a history, so their age decides. */
async function pruneLooseFiles({ directory, retention, isDryRun = false, now = new Date() }: PruneOptions): Promise<Pruned> {
  const expiredBefore = new Date(now.getTime() - retention.days * DAY_MS);
  const unfinishedSince = new Date(now.getTime() - UNFINISHED_MS);
  const files = await listLooseFiles(directory);
  const bytesBefore = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const counts = { expired: 0, overQuota: 0, bytesAfter: bytesBefore };
  for (const { store, name, bytes, modifiedAt, files: count } of files) {
    const isExpired = modifiedAt < expiredBefore;
    if (modifiedAt >= unfinishedSince || (!isExpired && counts.bytesAfter <= retention.maxBytes)) break; // the remaining files are younger
    if (!isDryRun) deleteBlobs(store, [name]);
    counts.bytesAfter -= bytes;
    counts[isExpired ? "expired" : "overQuota"] += count;
  }
  return { tenant: null, orphans: 0, bytesBefore, ...counts };
}

/** Least recently used first. A file that manifests refer to was used when the youngest of them was written. */
async function listLooseFiles(directory: string): Promise<LooseFile[]> {
  const artifacts = createFileBlobs({ directory, subject: "Artifacts" });
  const datasets = createFileBlobs({ directory: path.join(directory, "datasets"), subject: "The dataset" });
  const usedAt = await readLastUses(datasets); // before the files are listed, so that a file that is stored again meanwhile counts as new
  const files = [...listFiles(artifacts), ...groupByHash(listFiles(datasets))].map((file) => ({
    ...file,
    modifiedAt: laterOf(file.modifiedAt, usedAt.get(file.name)),
  }));
  // With equal times, manifests come before the files that they refer to.
  return files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime() || Number(usedAt.has(a.name)) - Number(usedAt.has(b.name)));
}

function listFiles(store: BlobStore): LooseFile[] {
  return store.list().map((blob) => ({ ...blob, store, files: 1 }));
}

/** Older versions wrote the document, index and tables of a dataset beside its manifest, under the same hash. They are removed together, by the youngest. */
function groupByHash(files: readonly LooseFile[]): LooseFile[] {
  const groups = Object.groupBy(files, ({ name, isDraft }) => (isDraft ? name : name.slice(0, 64)));
  return Object.values(groups).map((group) =>
    group!.reduce((all, file) => ({
      ...file,
      name: file.name.slice(0, 64),
      bytes: all.bytes + file.bytes,
      modifiedAt: laterOf(all.modifiedAt, file.modifiedAt),
      files: all.files + 1,
    })),
  );
}

function laterOf(date: Date, other: Date = date): Date {
  return date > other ? date : other;
}

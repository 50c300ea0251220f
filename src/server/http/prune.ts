import { setImmediate as nextTick } from "node:timers/promises";
import type { Configuration } from "../../config/configuration-schema.ts";
import type { FileNames, History, PrunableItem } from "../../history/history.ts";
import type { TenantStores } from "./create-tenant-stores.ts";
import { pruneLooseFiles } from "./prune-loose-files.ts";

export interface PruneOptions {
  /** Where everything is: the stores of tenants, and what commands without a history left. */
  readonly directory: string;
  readonly history: History;
  readonly storesOf: (tenant: string) => TenantStores;
  readonly retention: Configuration["server"]["retention"];
  /** Looked at besides those that the history knows. */
  readonly tenants?: readonly string[];
  /** Says what would be removed, and removes nothing. */
  readonly isDryRun?: boolean;
  readonly now?: Date;
  /** Conversations that somebody uses at this moment are left alone. */
  readonly isInUse?: (place: { tenant: string; id: string }) => boolean;
  readonly onRemoved?: (place: { tenant: string; id: string }) => void;
}

export interface Pruned {
  /** Null for files of `sluice ask` and `sluice mcp`, which know no tenants. */
  readonly tenant: string | null;
  /** Conversations, and artifacts of clients without one, that were not used for too long. */
  readonly expired: number;
  /** The oldest of a tenant that has too much. */
  readonly overQuota: number;
  /** FileNames that nothing referred to. */
  readonly orphans: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

const DAY_MS = 24 * 60 * 60_000;
/** What is younger may be about to get its row, or its name. */
const UNFINISHED_MS = 60 * 60_000;

/** Removes what is too old, then the oldest of what is too much, then what killed processes left. A conversation that runs is left alone. */
export async function prune(options: PruneOptions): Promise<Pruned[]> {
  const { history, isDryRun = false, tenants = [] } = options;
  const pruned: Pruned[] = [];
  for (const tenant of [...new Set([...history.tenants.list(), ...tenants])].sort()) {
    const steps = pruneTenant(tenant, options);
    pruned.push(isDryRun ? history.dryRun(() => atOnce(steps)) : await oneByOne(steps));
  }
  pruned.push(await pruneCommands(options));
  return pruned.filter(({ bytesBefore, orphans }) => bytesBefore > 0 || orphans > 0);
}

async function pruneCommands({ directory, retention, isDryRun = false, now = new Date() }: PruneOptions): Promise<Pruned> {
  const before = (ms: number): Date => new Date(now.getTime() - ms);
  const [tooOld, untouchedSince] = [before(retention.days * DAY_MS), before(UNFINISHED_MS)];
  const { maxBytes } = retention;
  return { tenant: null, orphans: 0, ...(await pruneLooseFiles({ directory, tooOld, untouchedSince, maxBytes, isDryRun })) };
}

/** Each step is whole: between two of them others may have their turn. */
function* pruneTenant(tenant: string, options: PruneOptions): Generator<void, Pruned> {
  const { history, storesOf, retention, isDryRun = false, now = new Date(), isInUse = () => false, onRemoved = () => {} } = options;
  const { references } = history;
  const stores = storesOf(tenant);
  const removeFiles = isDryRun ? () => {} : (files: FileNames) => stores.remove(files);
  const unused = (at: Date): PrunableItem[] =>
    references.unusedSince(tenant, at.toISOString()).filter((one) => one.kind === "artifact" || !isInUse({ tenant, id: one.id }));
  const remove = (one: PrunableItem): void => {
    references.deleteItem(tenant, one, removeFiles);
    if (one.kind === "conversation") onRemoved({ tenant, id: one.id });
  };

  const usedBytes = stores.measure();
  const bytesBefore = usedBytes();
  const expired = unused(new Date(now.getTime() - retention.days * DAY_MS));
  for (const one of expired) {
    remove(one);
    yield;
  }
  let overQuota = 0;
  for (const one of unused(now)) {
    if (usedBytes() <= retention.maxBytes) break;
    remove(one);
    overQuota += 1;
    yield;
  }
  const orphans = history.inTransaction(() => {
    const found = stores.orphans(Math.max(retention.days * DAY_MS, UNFINISHED_MS));
    removeFiles(found);
    return countOf(found);
  });
  if (!isDryRun) stores.removeDrafts(UNFINISHED_MS);
  return { tenant, expired: expired.length, overQuota, orphans, bytesBefore, bytesAfter: usedBytes() };
}

function atOnce<Value>(steps: Generator<void, Value>): Value {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

async function oneByOne<Value>(steps: Generator<void, Value>): Promise<Value> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await nextTick();
  }
}

function countOf({ artifacts, datasets, evidence, uploads }: FileNames): number {
  return artifacts.length + datasets.length + evidence.length + uploads.length;
}

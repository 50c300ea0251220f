import { existsSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { UploadStore } from "../../data/contract.ts";
import { createUploadStore } from "../../data/uploads/create-upload-store.ts";
import type { History } from "../../history/contract.ts";
import { openHistory } from "../../history/open-history.ts";
import { createTenantStores, directoryName, type TenantStores } from "../stores/create-tenant-stores.ts";
import { prune } from "./prune.ts";

const DAY_MS = 24 * 60 * 60_000;
const now = new Date("2026-06-30T00:00:00.000Z");
const daysAgo = (days: number): string => new Date(now.getTime() - days * DAY_MS).toISOString();

describe("prune", () => {
  let directory: string;
  let history: History;
  let storesOf: (tenant: string) => TenantStores;
  let uploads: UploadStore;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-prune-"));
    history = openHistory({ file: path.join(directory, "history.sqlite") });
    storesOf = createTenantStores({ directory, history });
    uploads = createUploadStore({ directory: path.join(directory, "uploads") });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  /** A conversation of a thousand bytes of its own, and a picture that all of them share. */
  async function add(id: string, days: number, { tenant = "a", isRunning = false } = {}): Promise<string> {
    const at = daysAgo(days);
    history.conversations.ensure({ tenant, id, title: id, at });
    history.turns.begin({ tenant, turnId: `turn-${id}`, conversationId: id, question: "?", at });
    const { artifactsFor, evidence } = storesOf(tenant);
    await artifactsFor(`turn-${id}`).put({ bytes: Buffer.from("shared"), type: "png" });
    const { url } = await artifactsFor(`turn-${id}`).put({ bytes: Buffer.from(id.padEnd(500)), type: "json" });
    const sha256 = Buffer.from(id.padEnd(32)).toString("hex");
    history.evidence.add({ tenant, conversationId: id }, { alias: "x", turnId: `turn-${id}`, record: "{}", sha256, bytes: 500 });
    await evidence.put(sha256, Buffer.from(id.padEnd(500)));
    if (!isRunning)
      history.turns.end({
        tenant,
        turnId: `turn-${id}`,
        at,
        result: { conversationId: id, outcome: { stopReason: "complete_answer" }, answer: "", dataset: null } as never,
      });
    return path.join(
      directory,
      "tenants",
      directoryName(tenant),
      "artifacts",
      url.slice("/artifacts/".length, "/artifacts/".length + 2),
      path.basename(url),
    );
  }
  const listed = (): string[] => history.conversations.list({ tenant: "a", limit: 50 }).items.map(({ id }) => id);
  const retention = { days: 30, maxBytes: 1_000_000 };

  test("removes what was not used for too long, and leaves what others share and what runs", async () => {
    const old = await add("old", 40);
    await add("fresh", 1);
    await add("runs", 50, { isRunning: true });
    const dry = await prune({ history, storesOf, uploads, retention, now, isDryRun: true });
    expect([dry[0]!.expired, listed()]).toEqual([1, ["fresh", "old", "runs"]]);
    expect(await prune({ history, storesOf, uploads, retention, now })).toEqual([
      { tenant: "a", expired: 1, overQuota: 0, orphans: 0, bytesBefore: 3006, bytesAfter: 2006 },
    ]);
    expect([listed(), existsSync(old)]).toEqual([["fresh", "runs"], false]);
    const picture = history.references.inUse("a").artifacts.find(({ type }) => type === "png");
    expect(Buffer.from((await storesOf("a").artifacts.get(picture!.contentHash, "png"))!).toString()).toBe("shared");
  });

  test("removes the oldest of a tenant that has too much, until it has not, and nothing of the others", async () => {
    for (const [index, id] of ["c1", "c2", "c3"].entries()) await add(id, 10 - index);
    await add("theirs", 20, { tenant: "b" });
    const pruned = await prune({ history, storesOf, uploads, retention: { ...retention, maxBytes: 2100 }, now });
    expect(pruned).toEqual([
      { tenant: "a", expired: 0, overQuota: 1, orphans: 0, bytesBefore: 3006, bytesAfter: 2006 },
      { tenant: "b", expired: 0, overQuota: 0, orphans: 0, bytesBefore: 1006, bytesAfter: 1006 },
    ]);
    expect(listed()).toEqual(["c3", "c2"]);
  });

  test("removes files that nothing refers to once they are old", async () => {
    await add("fresh", 1);
    const { url } = await storesOf("a").artifacts.put({ bytes: Buffer.from("of a client without a turn"), type: "json" });
    const file = path.join(directory, "tenants", directoryName("a"), "artifacts", url.slice(11, 13), path.basename(url));
    expect((await prune({ history, storesOf, uploads, retention, now }))[0]!.orphans).toBe(0);
    utimesSync(file, new Date(0), new Date(0));
    expect((await prune({ history, storesOf, uploads, retention, now }))[0]!.orphans).toBe(1);
    expect([existsSync(file), listed()]).toEqual([false, ["fresh"]]);
  });
});

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { UploadStore } from "../../data/conversation-data.ts";
import { createUploadStore } from "../../data/create-upload-store.ts";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { createDatasetFileStore } from "../../evidence/dataset/create-dataset-store.ts";
import type { History } from "../../history/history.ts";
import { openHistory } from "../../history/open-history.ts";
import { createTenantStores, directoryName, type TenantStores } from "./create-tenant-stores.ts";
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
    uploads = createUploadStore({ directory: path.join(directory, "uploads") });
    storesOf = createTenantStores({ directory, history, uploads });
  });
  afterEach(() => {
    history.close();
    rmSync(directory, { recursive: true });
  });

  /** Adds a conversation with 1000 bytes of its own and an image that all conversations share. Returns the path of its chart. */
  async function add(id: string, days: number, { tenant = "a", isRunning = false } = {}): Promise<string> {
    const at = daysAgo(days);
    history.conversations.ensure({ tenant, id, title: id, at });
    history.turns.begin({ tenant, turnId: `turn-${id}`, conversationId: id, question: "?", at });
    const stores = storesOf(tenant);
    const artifacts = stores.artifactsFor(`turn-${id}`);
    await artifacts.put({ bytes: Buffer.from("shared"), type: "png" });
    const { url } = await artifacts.put({ bytes: Buffer.from(id.padEnd(500)), type: "json" });
    const sha256 = Buffer.from(id.padEnd(32)).toString("hex");
    history.evidence.add({ tenant, conversationId: id }, { alias: "x", turnId: `turn-${id}`, record: "{}", sha256, bytes: 500 });
    await stores.evidence.put({ content: Buffer.from(id.padEnd(500)), hash: sha256 });
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
  const rowsOf = (tenant = "a"): number => history.sizes.ofRows(tenant);

  test("removes expired conversations, but not shared files or running turns", async () => {
    const old = await add("old", 40);
    await add("fresh", 1);
    await add("runs", 50, { isRunning: true });
    const rows = rowsOf();
    const dry = await prune({ directory, history, storesOf, retention, now, isDryRun: true });
    expect([listed(), existsSync(old)]).toEqual([["fresh", "old", "runs"], true]);
    const pruned = await prune({ directory, history, storesOf, retention, now });
    expect([pruned, dry]).toEqual([
      [{ tenant: "a", expired: 1, overQuota: 0, orphans: 0, bytesBefore: 3006 + rows, bytesAfter: 2006 + rowsOf() }],
      pruned,
    ]);
    expect([listed(), existsSync(old)]).toEqual([["fresh", "runs"], false]);
    const picture = history.references.filesInUse("a").artifacts.find((name) => name.endsWith(".png"));
    expect(Buffer.from((await storesOf("a").artifacts.get(picture!.slice(0, 64), "png"))!).toString()).toBe("shared");
  });

  test("removes the oldest conversations of a tenant until it is within its quota, and none of other tenants", async () => {
    for (const [index, id] of ["c1", "c2", "c3"].entries()) await add(id, 10 - index);
    await add("theirs", 20, { tenant: "b" });
    const rows = rowsOf();
    const options = { directory, history, storesOf, retention: { ...retention, maxBytes: 2006 + Math.ceil((rows * 2) / 3) }, now };
    const dry = await prune({ ...options, isDryRun: true });
    const pruned = await prune(options);
    expect(pruned).toEqual(dry);
    expect(pruned).toEqual([
      { tenant: "a", expired: 0, overQuota: 1, orphans: 0, bytesBefore: 3006 + rows, bytesAfter: 2006 + rowsOf() },
      { tenant: "b", expired: 0, overQuota: 0, orphans: 0, bytesBefore: 1006 + rowsOf("b"), bytesAfter: 1006 + rowsOf("b") },
    ]);
    expect(listed()).toEqual(["c3", "c2"]);
  });

  test("counts rows, and files that nothing refers to, which it removes before conversations", async () => {
    await add("c1", 2);
    await add("c2", 1);
    const { sha256 } = await uploads.put({ tenant: "a", fileName: "y.csv", content: Readable.from([Buffer.alloc(3000, "y")]) });
    const event = { type: "answer-delta", text: "x".repeat(5000) } as const;
    history.events.append({ tenant: "a", turnId: "turn-c2" }, { seq: 1, at: daysAgo(1), event });
    const before = 2006 + 3000 + rowsOf();
    expect(rowsOf()).toBeGreaterThan(5000);
    const options = { directory, history, storesOf, retention: { ...retention, maxBytes: before - 1 }, now };
    utimesSync(path.join(directory, "uploads", readdirSync(path.join(directory, "uploads"))[0]!, sha256.slice(0, 2), sha256), 0, 0);
    const dry = await prune({ ...options, isDryRun: true });
    expect([dry, listed()]).toEqual([
      [{ tenant: "a", expired: 0, overQuota: 0, orphans: 1, bytesBefore: before, bytesAfter: before - 3000 }],
      ["c2", "c1"],
    ]);
    expect(await prune(options)).toEqual(dry);
    expect(await prune({ ...options, retention: { ...retention, maxBytes: 5000 } })).toMatchObject([{ overQuota: 2, bytesAfter: 0 }]);
  });

  test("measures a conversation: rows, and each of its files once", async () => {
    await add("c1", 1);
    await add("c2", 1);
    const place = { tenant: "a", conversationId: "c1", at: daysAgo(1) };
    const row = { alias: "u", record: "{}", sha256: "0".repeat(64), bytes: 70_000 };
    const before = storesOf("a").sizeOfConversation("c1");
    expect(before - 1006).toBe(rowsOf() / 2);
    expect(history.uploads.add(place, row, () => true)).toBe(true);
    expect(history.uploads.add(place, { ...row, alias: "v" }, () => true)).toBe(true);
    const body = await storesOf("a").evidence.put({ content: Buffer.alloc(900) }); // its evidence is gone, a dataset still has it
    history.references.addDatasetBody({ tenant: "a", turnId: "turn-c1", sha256: body.hash });
    const added = storesOf("a").sizeOfConversation("c1") - before;
    expect([Math.floor(added / 1000), storesOf("a").sizeOfConversation("none")]).toEqual([71, 0]);
  });

  test("measures the bytes on disk: an output in two datasets counts once", async () => {
    const evidence = createEvidenceStore();
    evidence.add({ tool: "get_rows", output: { rows: "x".repeat(5000) } });
    const items = [evidence.get("get_rows_1")!];
    for (const id of ["one", "other"]) {
      const place = { tenant: "a", turnId: `turn-${id}`, conversationId: id };
      history.conversations.ensure({ tenant: "a", id, title: id, at: daysAgo(1) });
      history.turns.begin({ ...place, question: "?", at: daysAgo(1) });
      const dataset = await storesOf("a").datasetsFor(place.turnId).put({ facts: { id }, items, artifacts: [] });
      const result = { conversationId: id, outcome: { stopReason: "complete_answer" }, answer: "", dataset } as never;
      history.turns.end({ ...place, at: daysAgo(1), result });
    }
    const home = path.join(directory, "tenants", directoryName("a"));
    const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(path.join(parentPath, name)).size, 0);
    expect([files.length, Math.floor(bytes / 5000)]).toEqual([3, 1]);
    const [pruned] = await prune({ directory, history, storesOf, retention, now });
    const all = bytes + rowsOf();
    expect(pruned).toEqual({ tenant: "a", expired: 0, overQuota: 0, orphans: 0, bytesBefore: all, bytesAfter: all });
  });

  test("removes old files that no row refers to", async () => {
    await add("fresh", 1);
    const { url } = await storesOf("a").artifacts.put({ bytes: Buffer.from("published without a turn"), type: "json" });
    const file = path.join(directory, "tenants", directoryName("a"), "artifacts", url.slice(11, 13), path.basename(url));
    expect((await prune({ directory, history, storesOf, retention, now }))[0]!.orphans).toBe(0);
    utimesSync(file, new Date(0), new Date(0));
    expect((await prune({ directory, history, storesOf, retention, now }))[0]!.orphans).toBe(1);
    expect([existsSync(file), listed()]).toEqual([false, ["fresh"]]);
  });

  test("removes artifacts of MCP clients by age and quota, unless a turn uses them", async () => {
    const publish = async (text: string, days: number, tenant = "mcp"): Promise<void> => {
      const bytes = Buffer.from(text.padEnd(500));
      const { contentHash } = await storesOf(tenant).published.put({ bytes, type: "json" });
      history.references.addPublished({ tenant, contentHash, type: "json", bytes: 500, at: daysAgo(days) });
    };
    for (const [text, days] of Object.entries({ c1: 40, c2: 3, c3: 2, c4: 1 })) await publish(text, days);
    await add("c1", 1);
    await publish("c1", 40, "a"); // the same bytes as the chart of conversation c1
    const kept = async (tenant: string, text: string): Promise<boolean> => {
      const contentHash = createHash("sha256").update(text.padEnd(500)).digest("hex");
      return (await storesOf(tenant).artifacts.get(contentHash, "json")) !== null;
    };
    const bytesBefore = 1006 + rowsOf();
    expect(await prune({ directory, history, storesOf, retention: { days: 30, maxBytes: bytesBefore }, now })).toEqual([
      { tenant: "a", expired: 1, overQuota: 0, orphans: 0, bytesBefore, bytesAfter: bytesBefore },
      { tenant: "mcp", expired: 1, overQuota: 1, orphans: 0, bytesBefore: 2000, bytesAfter: 1000 },
    ]);
    const left = await Promise.all(["c1", "c2", "c3", "c4"].map((text) => kept("mcp", text)));
    expect([left, await kept("a", "c1"), listed()]).toEqual([[false, false, true, true], true, ["c1"]]);
  });

  test("removes uploads with their conversation, unless another conversation has the same file or uses it, and unfinished uploads", async () => {
    const upload = async (id: string, days: number, text: string): Promise<string> => {
      const kept = await uploads.put({ tenant: "a", fileName: "x.csv", content: Readable.from([Buffer.from(text)]) });
      const at = daysAgo(days);
      history.conversations.ensure({ tenant: "a", id, title: id, at });
      const row = { alias: "x", record: "{}", sha256: kept.sha256, bytes: kept.bytes };
      expect(history.uploads.add({ tenant: "a", conversationId: id, at }, row, () => uploads.blobsOf("a").has(kept.sha256))).toBe(true);
      return kept.sha256;
    };
    const shared = await upload("old", 40, "shared\n");
    await upload("fresh", 1, "shared\n");
    const own = await upload("older", 50, "own\n");
    const busy = await upload("busy", 60, "busy\n");
    const { sha256: orphan } = await uploads.put({ tenant: "a", fileName: "y.csv", content: Readable.from([Buffer.from("unowned\n")]) });
    const folder = path.join(directory, "uploads", readdirSync(path.join(directory, "uploads"))[0]!);
    const drafts = [path.join(folder, "1.part"), path.join(directory, "tenants", directoryName("a"), "evidence", "ab", "ab.1.part")];
    mkdirSync(path.dirname(drafts[1]!), { recursive: true });
    for (const draft of drafts) writeFileSync(draft, "");
    for (const file of [...drafts, path.join(folder, orphan.slice(0, 2), orphan)]) utimesSync(file, new Date(0), new Date(0));
    const isInUse = ({ id }: { id: string }): boolean => id === "busy";
    const removed: string[] = [];
    const onRemoved = ({ id }: { id: string }): void => void removed.push(id);
    const rows = rowsOf();
    expect(await prune({ directory, history, storesOf, retention, now, isInUse, onRemoved })).toEqual([
      { tenant: "a", expired: 2, overQuota: 0, orphans: 1, bytesBefore: 24 + rows, bytesAfter: 12 + rowsOf() },
    ]);
    const left = [shared, own, busy, orphan].map((sha256) => uploads.blobsOf("a").has(sha256));
    expect([left, removed, drafts.map((draft) => existsSync(draft))]).toEqual([
      [true, false, true, false],
      ["older", "old"],
      [false, false],
    ]);
  });

  test("removes all files of a dataset of `sluice ask` together", async () => {
    const files = [".json", ".index.json"].map((ending) => path.join(directory, "datasets", "aa", `${"a".repeat(64)}${ending}`));
    for (const [index, file] of files.entries()) {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, "x".repeat(100));
      utimesSync(file, new Date(daysAgo(2 + index)), new Date(daysAgo(2 + index)));
    }
    const options = { directory, history, storesOf, retention: { days: 30, maxBytes: 150 }, now };
    expect(await prune(options)).toEqual([{ tenant: null, expired: 0, overQuota: 2, orphans: 0, bytesBefore: 200, bytesAfter: 0 }]);
    expect(files.map((file) => existsSync(file))).toEqual([false, false]);
  });

  test("removes files of `sluice ask` and `sluice mcp` by age, and no other files in the directory", async () => {
    const names = ["a", "b", "c", "d"].map((digit) => digit.repeat(64));
    const files = [
      path.join("aa", `${names[0]}.png`),
      path.join("datasets", "bb", `${names[1]}.index.json`),
      path.join("cc", `${names[2]}.json`),
      path.join("dd", `${names[3]}.png`),
      path.join("drafts", "x.part"),
      path.join("aa", "foreign.txt"),
      path.join("pictures", `${names[0]}.png`),
    ];
    const ages = [40, 50, 3, 0, 40, 90, 90];
    for (const [index, name] of files.entries()) {
      const file = path.join(directory, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, "x".repeat(100));
      const at = new Date(daysAgo(ages[index]!));
      utimesSync(file, at, at);
    }
    const options = { directory, history, storesOf, retention: { days: 30, maxBytes: 100 }, now };
    const expected = [{ tenant: null, expired: 3, overQuota: 1, orphans: 0, bytesBefore: 500, bytesAfter: 100 }];
    expect(await prune({ ...options, isDryRun: true })).toEqual(expected);
    expect(await prune(options)).toEqual(expected);
    expect(files.map((name) => existsSync(path.join(directory, name)))).toEqual([false, false, false, true, false, true, true]);
  });

  test("keeps an output of `sluice ask` while a manifest refers to it, and reads no other files than manifests", async () => {
    const place = path.join(directory, "datasets");
    const store = createDatasetFileStore({ directory: place });
    const evidence = createEvidenceStore();
    const [shared, own] = ["shared", "own"].map((word) => evidence.add({ tool: "get_words", output: word }));
    const old = await store.put({ facts: { id: 1 }, items: [shared!, own!], artifacts: [] });
    const young = await store.put({ facts: { id: 2 }, items: [shared!], artifacts: [] });
    const document = path.join(place, "00", `${"0".repeat(64)}.json`); // of version 0.1.0, and too large to be read at once
    mkdirSync(path.dirname(document), { recursive: true });
    writeFileSync(document, '{"schemaVersion":1,');
    truncateSync(document, 3 * 2 ** 30);
    const fileOf = (name: string): string => path.join(place, name.slice(0, 2), name);
    const ages = { [`${old.hash}.json`]: 40, [`${young.hash}.json`]: 3, [shared!.sha256]: 50, [own!.sha256]: 50 };
    for (const [name, days] of [...Object.entries(ages), [path.basename(document), 3] as const]) {
      const at = new Date(daysAgo(days));
      utimesSync(fileOf(name), at, at);
    }
    const pruneTo = async (days: number) => await prune({ directory, history, storesOf, retention: { days, maxBytes: 2 ** 40 }, now });
    expect((await pruneTo(30))[0]).toMatchObject({ tenant: null, expired: 2 });
    expect(Object.keys(ages).map((name) => existsSync(fileOf(name)))).toEqual([false, true, true, false]);
    expect((await pruneTo(2))[0]).toMatchObject({ expired: 3, bytesAfter: 0 });
  });
});

import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listUnused, removeOldDrafts } from "../blobs/delete-blobs.ts";
import { SluiceError } from "../errors/sluice-error.ts";
import { createUploadStore } from "./create-upload-store.ts";

async function* pieces(...texts: (string | Buffer)[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

describe("createUploadStore", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(path.join(os.tmpdir(), "sluice-uploads-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const filesLeft = (): string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((one) => (one.isFile() ? [one.name] : []));
  const refusal = async (promise: Promise<unknown>): Promise<unknown> =>
    await promise.catch((error: unknown) => (error instanceof SluiceError ? [error.code, error.message] : error));

  test("stores the same content once per tenant, and opens it again", async () => {
    const store = createUploadStore({ directory });
    const sha256 = createHash("sha256").update("a,b\n1,2\n").digest("hex");
    const { content, ...first } = await store.put({
      tenant: "t1",
      fileName: "C:\\fakepath\\Sales 2024.CSV",
      content: pieces("a,b\n", "1,2\n"),
    });
    expect(first).toEqual({ tenant: "t1", sha256, bytes: 8, fileName: "Sales 2024.CSV", format: "csv" });
    expect([Buffer.from(content.read()).toString(), content.version(), content.sha256, content.bytes]).toEqual([
      "a,b\n1,2\n",
      sha256,
      sha256,
      8,
    ]);
    await store.put({ tenant: "t1", fileName: "../etc/again.csv", content: pieces("a,b\n1,2\n") });
    await store.put({ tenant: "./t1", fileName: "x.csv", content: pieces("a,b\n1,2\n") });
    expect(filesLeft()).toEqual([sha256, sha256]);
    expect([store.blobsOf("t1").has(sha256), store.blobsOf("nobody").has(sha256)]).toEqual([true, false]);
    const reopened = createUploadStore({ directory });
    expect(Buffer.from((await reopened.open(first))!.content.read()).toString()).toBe("a,b\n1,2\n");
    reopened.blobsOf("t1").delete(sha256);
    expect([await reopened.open(first), await reopened.open({ ...first, sha256: "../x" }), filesLeft()]).toEqual([null, null, [sha256]]);
  });

  test("refuses uploads that are too large, of an unknown type or of the wrong format, and keeps nothing of them", async () => {
    const store = createUploadStore({ directory, maxBytes: 10 });
    const put = (fileName: string, ...content: (string | Buffer)[]): Promise<unknown> =>
      refusal(store.put({ tenant: "t", fileName, content: pieces(...content) }));
    expect(await put("big.csv", "12345678", "9abc")).toEqual([
      "UPLOAD_TOO_LARGE",
      'The file "big.csv" is larger than the upload limit of 10 bytes.',
    ]);
    expect(await put("run.exe", "x")).toEqual(["UPLOAD_TYPE_UNKNOWN", 'The file "run.exe" has no supported extension.']);
    expect(await put("new\nline.sh", "x")).toEqual(["UPLOAD_TYPE_UNKNOWN", 'The file "new line.sh" has no supported extension.']);
    expect(await put("none.csv")).toEqual(["UPLOAD_NOT_AS_NAMED", 'The file "none.csv" was refused: the file is empty.']);
    expect(await put("fake.parquet", "PAR1", "abc")).toEqual([
      "UPLOAD_NOT_AS_NAMED",
      'The file "fake.parquet" was refused: it is not a complete Parquet file: PAR1 is missing at the start or the end.',
    ]);
    expect(await put("fake.xlsx", "abc")).toEqual([
      "UPLOAD_NOT_AS_NAMED",
      'The file "fake.xlsx" was refused: it is not an Excel workbook (.xlsx).',
    ]);
    expect(await put("wide.json", Buffer.from("a,b", "utf16le"))).toEqual([
      "UPLOAD_NOT_AS_NAMED",
      'The file "wide.json" was refused: it is not UTF-8 text: it contains zero bytes, like binary files and UTF-16.',
    ]);
    expect(filesLeft()).toEqual([]);
  });

  test("keeps nothing when the client disconnects", async () => {
    const store = createUploadStore({ directory });
    const gone = new AbortController();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a\n");
      gone.abort(new Error("gone"));
      yield Buffer.from("1\n");
    }
    await expect(store.put({ tenant: "t", fileName: "x.csv", content: broken(), signal: gone.signal })).rejects.toThrow("gone");
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a\n");
      throw new Error("connection reset");
    }
    await expect(store.put({ tenant: "t", fileName: "x.csv", content: failing() })).rejects.toThrow("connection reset");
    expect(filesLeft()).toEqual([]);
  });

  test("lists unused uploads and removes drafts by age", async () => {
    const store = createUploadStore({ directory });
    const { sha256 } = await store.put({ tenant: "t", fileName: "x.csv", content: pieces("a\n") });
    const [folder] = readdirSync(directory);
    const draft = path.join(directory, folder!, "abc.part");
    writeFileSync(draft, "half of it");
    const old = (tenant: string): string[] => listUnused(store.blobsOf(tenant), { olderThanMs: 1000, inUse: [] });
    expect([old("t"), old("nobody"), removeOldDrafts(store.blobsOf("t"), 1000)]).toEqual([[], [], 0]);
    for (const file of [draft, path.join(directory, folder!, sha256.slice(0, 2), sha256)]) utimesSync(file, new Date(0), new Date(0));
    expect([old("t"), removeOldDrafts(store.blobsOf("t"), 1000), filesLeft()]).toEqual([[sha256], 1, [sha256]]);
  });

  test("reports that the directory is not usable", async () => {
    const taken = path.join(directory, "a-file");
    writeFileSync(taken, "");
    const store = createUploadStore({ directory: taken });
    expect(await refusal(store.put({ tenant: "t", fileName: "x.csv", content: pieces("a\n") }))).toEqual([
      "STORAGE_UNAVAILABLE",
      expect.stringMatching(/^The upload cannot be stored in \S+a-file\S*: ENOTDIR/) as string,
    ]);
  });
});

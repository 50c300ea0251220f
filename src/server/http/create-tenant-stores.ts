import { createHash } from "node:crypto";
import path from "node:path";
import { createArtifactStore, type ArtifactStore } from "../../artifacts/artifact-store.ts";
import type { BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs } from "../../blobs/create-file-blobs.ts";
import { deleteBlobs, listUnused, removeOldDrafts } from "../../blobs/delete-blobs.ts";
import type { UploadStore } from "../../data/conversation-data.ts";
import type { DatasetStore } from "../../evidence/dataset/dataset.ts";
import { createDatasetStore } from "../../evidence/dataset/create-dataset-store.ts";
import type { FileNames, History, ArtifactReference } from "../../history/history.ts";

/** Where one tenant's bytes are. Nothing is shared between tenants, not even what is the same. */
export interface TenantStores {
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  /** By the sha256 of the output. */
  readonly evidence: BlobStore;
  /** Artifacts that a turn makes are its own from before they are written. Their addresses are of this server. */
  artifactsFor(turnId: string): ArtifactStore;
  /** As `artifactsFor`: what the dataset of a turn holds is referred to from before it is written. */
  datasetsFor(turnId: string): DatasetStore;
  /** For clients without a turn, of `/mcp`. */
  readonly published: ArtifactStore;
  remove(files: FileNames): void;
  /** Lists the files once. The returned function adds up the bytes of those that rows still refer to. */
  measure(): () => number;
  /** FileNames older than this that no row refers to. */
  orphans(olderThanMs: number): FileNames;
  /** What writers that were killed left; how many there were. */
  removeDrafts(olderThanMs: number): number;
}

export interface TenantStoresOptions {
  readonly directory: string;
  readonly history: History;
  readonly uploads: UploadStore;
  readonly onArtifact?: (artifact: { type: string; bytes: number }) => void;
}

export function createTenantStores(options: TenantStoresOptions): (tenant: string) => TenantStores {
  const { directory, history, uploads, onArtifact = () => {} } = options;
  const made = new Map<string, TenantStores>();

  function make(tenant: string): TenantStores {
    const home = path.join(directory, "tenants", directoryName(tenant));
    const places: Record<keyof FileNames, BlobStore> = {
      artifacts: createFileBlobs({ directory: path.join(home, "artifacts"), subject: "Artifacts" }),
      datasets: createFileBlobs({ directory: path.join(home, "datasets"), subject: "The dataset" }),
      evidence: createFileBlobs({ directory: path.join(home, "evidence"), subject: "Evidence", isPrivate: true }),
      uploads: uploads.blobsOf(tenant),
    };
    const artifacts = createArtifactStore(places.artifacts, (name) => `/artifacts/${name}`);
    const recorded = (record: (artifact: ArtifactReference) => void): ArtifactStore => ({
      get: (contentHash, type) => artifacts.get(contentHash, type),
      async put({ bytes, type }) {
        const contentHash = createHash("sha256").update(bytes).digest("hex");
        record({ tenant, contentHash, type, bytes: bytes.length });
        const kept = await artifacts.put({ bytes, type });
        onArtifact({ type, bytes: bytes.length });
        return kept;
      },
    });
    const datasetsWith = (onBody?: (sha256: string) => void): DatasetStore =>
      createDatasetStore({
        manifests: places.datasets,
        bodies: toBodies(places),
        toUrl: (hash) => `/data/ds_${hash.slice(0, 24)}.json`,
        ...(onBody && { onBody }),
      });
    const each = Object.entries(places) as [keyof FileNames, BlobStore][];
    const toKey = (place: keyof FileNames, name: string): string => (place === "artifacts" ? name : name.slice(0, 64));
    return {
      artifacts,
      datasets: datasetsWith(),
      evidence: places.evidence,
      artifactsFor: (turnId) => recorded((artifact) => history.references.addArtifact({ ...artifact, turnId })),
      datasetsFor: (turnId) => datasetsWith((sha256) => history.references.addDatasetBody({ tenant, turnId, sha256 })),
      published: recorded((artifact) => history.references.addPublished({ ...artifact, at: new Date().toISOString() })),
      remove(files) {
        for (const [place, blobs] of each) deleteBlobs(blobs, files[place]);
      },
      measure() {
        const files = each.flatMap(([place, blobs]) => blobs.list().map(({ name, bytes }) => ({ place, key: toKey(place, name), bytes })));
        return () => {
          const inUse = history.references.filesInUse(tenant);
          const used = Object.fromEntries(each.map(([place]) => [place, new Set(inUse[place])]));
          return files.reduce((sum, { place, key, bytes }) => sum + (used[place]!.has(key) ? bytes : 0), 0);
        };
      },
      orphans(olderThanMs) {
        const inUse = history.references.filesInUse(tenant);
        const unused = each.map(([place, blobs]) => {
          return [place, listUnused(blobs, { olderThanMs, inUse: inUse[place], toKey: (name) => toKey(place, name) })] as const;
        });
        return Object.fromEntries(unused) as unknown as FileNames;
      },
      removeDrafts: (olderThanMs) => each.reduce((count, [, blobs]) => count + removeOldDrafts(blobs, olderThanMs), 0),
    };
  }

  return (tenant) => {
    const stores = made.get(tenant) ?? make(tenant);
    made.set(tenant, stores);
    return stores;
  };
}

/** What datasets hold is evidence, or was uploaded and is not kept twice. */
function toBodies({ evidence, uploads }: Record<"evidence" | "uploads", BlobStore>): Pick<BlobStore, "put" | "stream"> {
  const holderOf = (name: string): BlobStore => (uploads.has(name) ? uploads : evidence);
  return {
    put: (blob) => holderOf(blob.hash ?? "").put(blob),
    stream: (name, range) => holderOf(name).stream(name, range),
  };
}

/** Readable, and never the same for two tenants. */
export function directoryName(tenant: string): string {
  const words = tenant
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 24);
  return `${words}-${createHash("sha256").update(tenant).digest("hex").slice(0, 16)}`;
}

import { createHash } from "node:crypto";
import path from "node:path";
import type { ArtifactStore } from "../../artifacts/contract.ts";
import { createFileStore } from "../../artifacts/create-file-store.ts";
import type { UploadStore } from "../../data/contract.ts";
import type { DatasetStore } from "../../evidence/dataset/contract.ts";
import { createDatasetFileStore } from "../../evidence/dataset/create-dataset-file-store.ts";
import type { Files, History, StoredArtifact } from "../../history/contract.ts";
import { createBlobStore, type BlobStore } from "../../history/create-blob-store.ts";
import { listOldFiles, removeFiles, removeOldDrafts } from "./remove-files.ts";

/** Where one tenant's bytes are. Nothing is shared between tenants, not even what is the same. */
export interface TenantStores {
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  readonly evidence: BlobStore;
  /** Artifacts that a turn makes are its own from before they are written. Their addresses are of this server. */
  artifactsFor(turnId: string): ArtifactStore;
  /** For clients without a turn, of `/mcp`. */
  readonly published: ArtifactStore;
  remove(files: Files): void;
  /** Files older than this that no row refers to. */
  orphans(olderThanMs: number): Files;
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
    const places = {
      artifacts: path.join(home, "artifacts"),
      datasets: path.join(home, "datasets"),
      evidence: path.join(home, "evidence"),
    };
    const artifacts = withHttpUrls(createFileStore({ directory: places.artifacts }));
    const stored = createDatasetFileStore({ directory: places.datasets });
    const recorded = (record: (artifact: StoredArtifact) => void): ArtifactStore => ({
      get: (contentHash, type) => artifacts.get(contentHash, type),
      async put({ bytes, type }) {
        const contentHash = createHash("sha256").update(bytes).digest("hex");
        record({ tenant, contentHash, type, bytes: bytes.length });
        const kept = await artifacts.put({ bytes, type });
        onArtifact({ type, bytes: bytes.length });
        return kept;
      },
    });
    return {
      artifacts,
      datasets: {
        ...stored,
        async put(dataset) {
          const kept = await stored.put(dataset);
          return { ...kept, url: `/data/${kept.datasetId}.json` };
        },
      },
      evidence: createBlobStore({ directory: places.evidence }),
      artifactsFor: (turnId) => recorded((artifact) => history.references.addArtifact({ ...artifact, turnId })),
      published: recorded((artifact) => history.references.addPublished({ ...artifact, at: new Date().toISOString() })),
      remove(files) {
        removeFiles(places, files);
        for (const sha256 of files.uploads) uploads.remove({ tenant, sha256 });
      },
      orphans(olderThanMs) {
        const inUse = history.references.inUse(tenant);
        const given = uploads.listOld(tenant, olderThanMs).filter((sha256) => !inUse.uploads.includes(sha256));
        return { ...listOldFiles(places, { olderThanMs, inUse }), uploads: given };
      },
      removeDrafts: (olderThanMs) => removeOldDrafts(places, olderThanMs),
    };
  }

  return (tenant) => {
    const stores = made.get(tenant) ?? make(tenant);
    made.set(tenant, stores);
    return stores;
  };
}

function withHttpUrls(store: ArtifactStore): ArtifactStore {
  return {
    get: (contentHash, type) => store.get(contentHash, type),
    async put(content) {
      const kept = await store.put(content);
      return { ...kept, url: `/artifacts/${kept.contentHash}.${kept.type}` };
    },
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

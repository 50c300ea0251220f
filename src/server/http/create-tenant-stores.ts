import { createHash } from "node:crypto";
import path from "node:path";
import { createArtifactStore, type ArtifactStore, type NewArtifact } from "../../artifacts/artifact-store.ts";
import type { BlobStore } from "../../blobs/blob-store.ts";
import { createFileBlobs, hashBytes } from "../../blobs/create-file-blobs.ts";
import type { StorageBudget } from "../../blobs/storage-budget.ts";
import { deleteBlobs, listUnused, removeOldDrafts } from "../../blobs/delete-blobs.ts";
import type { UploadStore } from "../../data/conversation-data.ts";
import type { DatasetStore } from "../../evidence/dataset/dataset.ts";
import { createDatasetStore } from "../../evidence/dataset/create-dataset-store.ts";
import type { ArtifactRow, FileNames, History } from "../../history/history.ts";

export interface TenantStoresOptions {
  readonly directory: string;
  readonly history: History;
  readonly uploads: UploadStore;
  readonly onArtifact?: (artifact: Pick<NewArtifact, "type" | "isFigureData"> & { readonly bytes: number }) => void;
}

/** Returns the stores of a tenant; the same object for every call with that tenant. */
export function createTenantStores(options: TenantStoresOptions): (tenant: string) => TenantStores {
  const byTenant = new Map<string, TenantStores>();
  return (tenant) => {
    const stores = byTenant.get(tenant) ?? new TenantStores(tenant, options);
    byTenant.set(tenant, stores);
    return stores;
  };
}

type StoreName = keyof FileNames;

/** The files of one tenant. Tenants share no files, not even identical ones. */
export class TenantStores {
  readonly artifacts: ArtifactStore;
  readonly datasets: DatasetStore;
  readonly #tenant: string;
  readonly #options: TenantStoresOptions;
  readonly #blobs: Readonly<Record<StoreName, BlobStore>>;

  constructor(tenant: string, options: TenantStoresOptions) {
    const home = path.join(options.directory, "tenants", directoryName(tenant));
    this.#tenant = tenant;
    this.#options = options;
    this.#blobs = {
      artifacts: createFileBlobs({ directory: path.join(home, "artifacts"), subject: "Artifacts" }),
      datasets: createFileBlobs({ directory: path.join(home, "datasets"), subject: "The dataset" }),
      evidence: createFileBlobs({ directory: path.join(home, "evidence"), subject: "Evidence", isPrivate: true }),
      uploads: options.uploads.blobsOf(tenant),
    };
    this.artifacts = createArtifactStore(this.#blobs.artifacts, (name) => `/artifacts/${name}`);
    this.datasets = this.#createDatasets();
  }

  /** Evidence, by the sha256 of its bytes. */
  get evidence(): BlobStore {
    return this.#blobs.evidence;
  }

  /** A store for the artifacts of a turn. Each gets its row before its file is written, so that it is never pruned in between. */
  artifactsFor(turnId: string, storage?: StorageBudget): ArtifactStore {
    return this.#recordArtifacts((artifact) => {
      storage?.check("The artifact", artifact.bytes);
      this.#options.history.references.addArtifact({ ...artifact, turnId });
    });
  }

  /** A store for the dataset of a turn. Rows are written before files, as in `artifactsFor`. */
  datasetsFor(turnId: string): DatasetStore {
    const tenant = this.#tenant;
    return this.#createDatasets((sha256) => this.#options.history.references.addDatasetBody({ tenant, turnId, sha256 }));
  }

  /** A store for artifacts of MCP clients, which have no turn. */
  get published(): ArtifactStore {
    const { references } = this.#options.history;
    return this.#recordArtifacts((artifact) => references.addPublished({ ...artifact, at: new Date().toISOString() }));
  }

  remove(files: FileNames): void {
    for (const [store, blobs] of this.#entries()) deleteBlobs(blobs, files[store]);
  }

  /** What a conversation has on disk: its rows, and its files, each once. */
  sizeOfConversation(id: string): number {
    const { bytes, unmeasured } = this.#options.history.sizes.ofConversation(this.#tenant, id);
    const files = [
      ...unmeasured.datasets.flatMap((hash) => this.#blobs.datasets.list(hash)),
      ...unmeasured.evidence.flatMap((hash) => [...this.#blobs.evidence.list(hash), ...this.#blobs.uploads.list(hash)]),
    ];
    return files.reduce((sum, file) => sum + file.bytes, bytes);
  }

  /**
   * Lists the files once, without `removed`. The returned function gives the size of the tenant's rows and of these files when it is called; a file to which
   * rows referred before does not count once no row does.
   */
  measure(removed: FileNames | null = null): () => number {
    const { references, sizes } = this.#options.history;
    const listInUse = (): Readonly<Record<StoreName, ReadonlySet<string>>> => {
      const inUse = references.filesInUse(this.#tenant);
      return Object.fromEntries(this.#entries().map(([store]) => [store, new Set(inUse[store])])) as Record<StoreName, Set<string>>;
    };
    const wasInUse = listInUse();
    const files = this.#entries().flatMap(([store, blobs]) => {
      const gone = new Set(removed?.[store]);
      return blobs
        .list()
        .filter(({ name }) => !gone.has(name))
        .map(({ name, bytes }) => ({ store, key: toReferenceKey(store, name), bytes }));
    });
    return () => {
      const inUse = listInUse();
      const isThere = ({ store, key }: (typeof files)[number]): boolean => inUse[store].has(key) || !wasInUse[store].has(key);
      return files.reduce((sum, file) => sum + (isThere(file) ? file.bytes : 0), sizes.ofRows(this.#tenant));
    };
  }

  /** Files older than `olderThanMs` that no row refers to. */
  orphans(olderThanMs: number): FileNames {
    const inUse = this.#options.history.references.filesInUse(this.#tenant);
    const unused = this.#entries().map(([store, blobs]) => {
      return [store, listUnused(blobs, { olderThanMs, inUse: inUse[store], toKey: (name) => toReferenceKey(store, name) })] as const;
    });
    return Object.fromEntries(unused) as unknown as FileNames;
  }

  /** Removes unfinished files of writers that were killed; returns how many. */
  removeDrafts(olderThanMs: number): number {
    return this.#entries().reduce((count, [, blobs]) => count + removeOldDrafts(blobs, olderThanMs), 0);
  }

  #entries(): [StoreName, BlobStore][] {
    return Object.entries(this.#blobs) as [StoreName, BlobStore][];
  }

  #recordArtifacts(record: (artifact: ArtifactRow) => void): ArtifactStore {
    const { artifacts } = this;
    const tenant = this.#tenant;
    const { onArtifact = () => {} } = this.#options;
    return {
      get: (contentHash, type) => artifacts.get(contentHash, type),
      async put({ bytes, type, isFigureData }) {
        const contentHash = await hashBytes(bytes);
        record({ tenant, contentHash, type, bytes: bytes.length });
        const stored = await artifacts.put({ bytes, type });
        onArtifact({ type, isFigureData, bytes: bytes.length });
        return stored;
      },
    };
  }

  #createDatasets(onBody?: (sha256: string) => void): DatasetStore {
    return createDatasetStore({
      manifests: this.#blobs.datasets,
      bodies: toBodies(this.#blobs),
      toUrl: (hash) => `/data/ds_${hash.slice(0, 24)}.json`,
      onBody,
    });
  }
}

/** The bodies of datasets: uploads stay where they are, everything else is stored as evidence. */
function toBodies({ evidence, uploads }: Record<"evidence" | "uploads", BlobStore>): Pick<BlobStore, "put" | "stream"> {
  const storeOf = (name: string): BlobStore => (uploads.has(name) ? uploads : evidence);
  return {
    put: (blob) => storeOf(blob.hash ?? "").put(blob),
    stream: (name, range) => storeOf(name).stream(name, range),
  };
}

/** How rows refer to a file: artifacts by hash and type, the others by hash. */
function toReferenceKey(store: StoreName, name: string): string {
  return store === "artifacts" ? name : name.slice(0, 64);
}

/** Readable, and unique for each tenant. */
export function directoryName(tenant: string): string {
  const words = tenant
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 24);
  return `${words}-${createHash("sha256").update(tenant).digest("hex").slice(0, 16)}`;
}

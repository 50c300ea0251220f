import type { ArtifactStore, ArtifactType } from "../../../artifacts/stored-artifact.ts";

const artifactUri = (contentHash: string): string => `sluice://artifacts/${contentHash}`;

/** Past it the one published longest ago is found no more by its address. */
const MAX_KNOWN = 10_000;

/** A tenant's artifacts under the address that MCP clients read them by. */
export interface TenantArtifacts {
  readonly store: ArtifactStore;
  /** Only of what went through `store`: a store may be shared, and a hash is no secret. */
  read(contentHash: string): Promise<{ readonly type: ArtifactType; readonly bytes: Uint8Array } | null>;
}

export function addressArtifacts(store: ArtifactStore): TenantArtifacts {
  const types = new Map<string, ArtifactType>();
  return {
    store: {
      async put(content) {
        const stored = await store.put(content);
        types.delete(stored.contentHash);
        types.set(stored.contentHash, content.type);
        if (types.size > MAX_KNOWN) types.delete(types.keys().next().value!);
        return { ...stored, url: artifactUri(stored.contentHash) };
      },
      get: (contentHash, type) => store.get(contentHash, type),
    },
    async read(contentHash) {
      const type = types.get(contentHash);
      const bytes = type === undefined ? null : await store.get(contentHash, type);
      return type === undefined || bytes === null ? null : { type, bytes };
    },
  };
}

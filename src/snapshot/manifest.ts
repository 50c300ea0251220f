import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { SluiceError } from "../errors/sluice-error.ts";
import { sha256 } from "./file-list.ts";
import type { SnapshotSource } from "./recipe.ts";

/** The part of a snapshot that changes rarely: Debian, Python, libraries, fonts. */
export interface LayerManifest {
  schemaVersion: 1;
  architecture: string;
  python: string;
  source: SnapshotSource;
  /** Python packages, name to version. */
  packages: Record<string, string>;
  debianPackages: Record<string, string>;
  /** Hash of what the layer was made from: recipe, lock, architecture. */
  inputsHash: string;
  /** Hash of the list of its files. */
  contentHash: string;
  bytes: number;
  builtAt: string;
}

export interface SnapshotManifest extends LayerManifest {
  id: string;
  workerHash: string;
}

const layerFields = {
  schemaVersion: z.literal(1),
  architecture: z.string(),
  python: z.string(),
  source: z.enum(["wheels", "debian"]),
  packages: z.record(z.string(), z.string()),
  debianPackages: z.record(z.string(), z.string()),
  inputsHash: z.string(),
  contentHash: z.string(),
  bytes: z.number(),
  builtAt: z.iso.datetime(),
};

export const layerSchema: z.ZodType<LayerManifest> = z.object(layerFields);
export const manifestSchema: z.ZodType<SnapshotManifest> = z.object({ ...layerFields, id: z.string(), workerHash: z.string() });

/** What a built snapshot is called: a hash of everything in its manifest that is about content. When and how large it is are not. */
export function snapshotId(manifest: Omit<SnapshotManifest, "id">): string {
  const { schemaVersion, architecture, python, source, packages, debianPackages, inputsHash, contentHash, workerHash } = manifest;
  const sorted = (versions: Record<string, string>): [string, string][] => Object.entries(versions).sort(([a], [b]) => (a < b ? -1 : 1));
  const content = [
    schemaVersion,
    architecture,
    python,
    source,
    sorted(packages),
    sorted(debianPackages),
    inputsHash,
    contentHash,
    workerHash,
  ];
  return sha256(JSON.stringify(content)).slice(0, 32);
}

/** Null when there is none. A newer version than this program knows is refused by name. */
export async function readManifest<Manifest>(schema: z.ZodType<Manifest>, file: string): Promise<Manifest | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || (error as NodeJS.ErrnoException).code === "ENOTDIR") return null;
    throw error;
  }
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new SluiceError({
    code: "snapshot_manifest_unknown",
    message: `${file} is not a manifest of version 1: ${z.prettifyError(parsed.error)}`,
    hint: `Remove ${path.dirname(file)} and run \`sluice snapshot build\`.`,
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Prints a bill of materials in CycloneDX format (JSON, version 1.6): npm packages from package-lock.json, Python wheels from python/requirements.lock, and the
 * Debian packages and gVisor that this machine's sandboxes use. `npm run sbom -- FILE` writes it to a file. The same state gives the same text.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cacheDirectory, searchPath } from "../src/config/environment.ts";
import { packageVersion } from "../src/package-version.ts";
import { findRunsc } from "../src/sandbox/drivers/gvisor/runsc.ts";
import { manifestSchema, readManifest, requireSnapshot, type SnapshotManifest } from "../src/sandbox/snapshot/find-snapshot.ts";
import { lockFile } from "../src/sandbox/snapshot/recipe.ts";

interface Component {
  readonly type: "library" | "application";
  readonly "bom-ref": string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: "optional";
  readonly licenses?: readonly ({ readonly expression: string } | { readonly license: { readonly name: string } })[];
  readonly hashes?: readonly { readonly alg: "SHA-256" | "SHA-512"; readonly content: string }[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
}

const root = path.join(import.meta.dirname, "..");
const snapshot = await requireSnapshot({ cacheDirectory: cacheDirectory() });
const manifest = await readManifest(manifestSchema, path.join(snapshot.rootfs, "..", "manifest.json"));
if (manifest === null) throw new Error(`The manifest of snapshot ${snapshot.id} is missing. Run npm run setup.`);

const components = [...listNpmPackages(), ...listWheels(), ...listDebianPackages(manifest), ...(await listGvisor())];
const byReference = new Map(components.map((component) => [component["bom-ref"], component]));
const bill = {
  $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
  bomFormat: "CycloneDX",
  specVersion: "1.6",
  version: 1,
  metadata: {
    component: {
      type: "application",
      "bom-ref": "sluice",
      name: "sluice",
      version: packageVersion,
      licenses: [{ expression: "Apache-2.0" }],
    },
    properties: [{ name: "sluice:snapshot", value: manifest.id }],
  },
  components: [...byReference.values()].toSorted((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1)),
};
const text = `${JSON.stringify(bill, null, 2)}\n`;
const file = process.argv[2];
if (file === undefined) process.stdout.write(text);
else writeFileSync(file, text);

/** Packages for development are marked as such; the page's libraries are among them, because the build bundles them. */
function listNpmPackages(): Component[] {
  const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as { packages: Record<string, LockedPackage> };
  const { "": _, ...packages } = lock.packages;
  return Object.entries(packages).map(([place, { version, integrity, license, dev, optional }]): Component => {
    const fullName = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
    const [name, group] = fullName.split("/").toReversed();
    const purl = `pkg:npm/${fullName.replace("@", "%40")}@${version}`;
    const content = Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex");
    return {
      ...{ type: "library", "bom-ref": purl, group, name: name!, version, purl },
      scope: optional === true ? "optional" : undefined,
      licenses: license === undefined ? undefined : [license.startsWith("SEE ") ? { license: { name: license } } : { expression: license }],
      hashes: [{ alg: "SHA-512", content }],
      properties: dev === true ? [{ name: "cdx:npm:package:development", value: "true" }] : undefined,
    };
  });
}

/** Each has the hashes of its files for both machine types. */
function listWheels(): Component[] {
  const requirements = readFileSync(lockFile, "utf8")
    .split(/\n(?=[a-z\d])/)
    .slice(1);
  return requirements.map((lines): Component => {
    const [, name, version] = /^([\w-]+)==([\w.+]+)/.exec(lines)!;
    const purl = `pkg:pypi/${name}@${version}`;
    const hashes = [...lines.matchAll(/--hash=sha256:([\da-f]{64})/g)].map(([, content]) => ({
      alg: "SHA-256" as const,
      content: content!,
    }));
    return { type: "library", "bom-ref": purl, name: name!, version: version!, purl, hashes };
  });
}

function listDebianPackages({ debianPackages, architecture }: SnapshotManifest): Component[] {
  const debianArchitecture = architecture === "x64" ? "amd64" : architecture;
  return Object.entries(debianPackages).map(([name, version]): Component => {
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${debianArchitecture}&distro=debian-13`;
    return { type: "library", "bom-ref": purl, name, version, purl };
  });
}

async function listGvisor(): Promise<Component[]> {
  const runsc = await findRunsc({ searchPath: searchPath(), cacheDirectory: cacheDirectory() });
  if (runsc === null) return [];
  const purl = `pkg:github/google/gvisor@${encodeURIComponent(runsc.version)}`;
  const content = createHash("sha512").update(readFileSync(runsc.path)).digest("hex");
  return [{ type: "application", "bom-ref": purl, name: "runsc", version: runsc.version, purl, hashes: [{ alg: "SHA-512", content }] }];
}

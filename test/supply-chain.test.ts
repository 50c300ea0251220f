import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv, type AnySchemaObject } from "ajv";
import ajvFormats from "ajv-formats";
import { beforeAll, describe, expect, test } from "vitest";

const root = path.join(import.meta.dirname, "..");

interface NpmLock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly resolved?: string; readonly link?: boolean }>>;
}

test("every package in package-lock.json has a hash and names no registry", () => {
  const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as NpmLock;
  const { "": project, ...locked } = packages;
  expect(project).toBeDefined();
  expect(Object.keys(locked).length).toBeGreaterThan(300);
  const unverified = Object.entries(locked).filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ""));
  expect(unverified).toEqual([]);
  expect(Object.values(locked).filter((entry) => "resolved" in entry)).toEqual([]);
});

test.each(globSync("python/*.lock", { cwd: root }))("every requirement in %s has one version and hashes, and no option", (file) => {
  // A requirement continues over lines that end with a backslash.
  const requirements = readFileSync(path.join(root, file), "utf8").replaceAll("\\\n", "").trim().split("\n").slice(1);
  expect(requirements.length).toBeGreaterThan(0);
  const unverified = requirements.filter((line) => !/^[a-z\d-]+==[\w.]+(?: +--hash=sha256:[\da-f]{64})+$/.test(line));
  expect(unverified).toEqual([]);
});

describe("the bill of materials", () => {
  const print = (): string =>
    execFileSync(process.execPath, ["scripts/write-sbom.ts"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
  let text: string;
  let bill: { components: { purl: string; hashes?: unknown[] }[] };
  beforeAll(() => {
    text = print();
    bill = JSON.parse(text) as typeof bill;
  });
  const library = path.dirname(fileURLToPath(import.meta.resolve("@cyclonedx/cyclonedx-library/package.json")));
  /** The published schema. It refers to others by the names of their files. */
  const readSchema = (name: string): AnySchemaObject => {
    const file = `${name}.SNAPSHOT.schema.json`;
    const schema = JSON.parse(readFileSync(path.join(library, "res", "schema", file), "utf8")) as AnySchemaObject;
    return { ...schema, $id: `http://cyclonedx.org/schema/${file}` };
  };

  test("is valid CycloneDX", () => {
    const ajv = new Ajv({ strict: false, allErrors: true, formats: { "iri-reference": true, "idn-email": true } });
    ajvFormats.default(ajv);
    const validate = ajv
      .addSchema([readSchema("spdx"), readSchema("jsf-0.82"), readSchema("cryptography-defs")])
      .compile(readSchema("bom-1.6"));
    expect(validate(bill) ? [] : validate.errors).toEqual([]);
    expect(validate({ ...bill, components: [{ type: "library" }] })).toBe(false);
  });

  test("has every npm package, wheel and Debian package, and gVisor, and all but Debian's packages with their hash", () => {
    const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as NpmLock;
    const places = Object.keys(packages).filter((place) => place !== "");
    const names = new Set(places.map((place) => place.split("node_modules/").at(-1)!));
    const purls = bill.components.map(({ purl }) => purl);
    for (const name of names)
      expect(
        purls.some((purl) => purl.startsWith(`pkg:npm/${name.replace("@", "%40")}@`)),
        name,
      ).toBe(true);
    for (const line of readFileSync(path.join(root, "python/requirements.lock"), "utf8").matchAll(/^([\w-]+)==(\S+)/gm))
      expect(purls).toContain(`pkg:pypi/${line[1]}@${line[2]}`);
    for (const name of ["python3.13-minimal", "libc6", "base-files"])
      expect(purls.some((purl) => purl.startsWith(`pkg:deb/debian/${name}@`))).toBe(true);
    expect(purls.some((purl) => purl.startsWith("pkg:github/google/gvisor@"))).toBe(true);
    expect(new Set(purls).size).toBe(purls.length);
    expect(bill.components.filter(({ purl, hashes = [] }) => !purl.startsWith("pkg:deb/") && hashes.length === 0)).toEqual([]);
  });

  test("is the same text each time, and names no file of this machine", () => {
    expect(print()).toBe(text);
    expect(text).not.toContain(root);
    expect(text).not.toContain("/tmp/");
  });
});

import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { cacheDirectory as realCacheDirectory } from "../../../config/environment.ts";
import { installRunsc, type InstallRunscOptions } from "./install-runsc.ts";
import { toImageKey } from "./memory-image.ts";
import { findRunsc } from "./runsc.ts";
import { toRunscFlags } from "./runsc-process.ts";

const sha512Of = (bytes: Uint8Array): string => createHash("sha512").update(bytes).digest("hex");
const page = Buffer.from("<!doctype html><title>Sign in</title>");
const script = Buffer.from("#!/bin/sh\ntouch /tmp/sluice-ran-unverified\n");
const never = AbortSignal.timeout(2 ** 31 - 1);

let program: Buffer;
let other: Buffer;
let url: string;
let cacheDirectory: string;

const answers: Record<string, RequestListener> = {
  "/runsc": (_, response) => response.end(program),
  "/moved": (_, response) => response.writeHead(302, { location: "/runsc" }).end(),
  "/cut-off": (_, response) => {
    response.writeHead(200, { "content-length": program.length });
    response.write(program.subarray(0, 100_000), () => response.destroy());
  },
  "/cut-off-chunk": (_, response) => response.write(program.subarray(0, 100_000), () => response.destroy()),
  "/page": (_, response) => response.end(page),
  "/script": (_, response) => response.end(script),
  "/other": (_, response) => response.end(other),
  "/endless": (_, response) => {
    const send = (): void => void (response.destroyed || response.write(program.subarray(0, 65_536), send));
    send();
  },
};
const server = createServer((request, response) => {
  const answer = answers[request.url ?? ""];
  if (answer === undefined) response.writeHead(404).end("not here");
  else answer(request, response);
});

beforeAll(async () => {
  const runsc = await findRunsc({ searchPath: process.env["PATH"] ?? "", cacheDirectory: realCacheDirectory() });
  if (runsc === null) throw new Error("runsc is missing: run `npm run setup`.");
  [program, other] = await Promise.all([readFile(runsc.path), readFile("/bin/true")]);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(async () => {
  cacheDirectory = await mkdtemp(join(tmpdir(), "sluice-runsc-"));
});
afterEach(() => rm(cacheDirectory, { recursive: true }));

const install = (options: Pick<InstallRunscOptions, "source" | "sha512"> & Partial<InstallRunscOptions>): Promise<void> =>
  installRunsc({ cacheDirectory, signal: never, ...options });
const listCache = async (): Promise<string[]> => (await readdir(cacheDirectory, { recursive: true })).toSorted();

describe("a chosen runsc", () => {
  test.each(["/runsc", "/moved", "a file"])("from %s is installed and used before the one on PATH", async (from) => {
    const onPath = join(cacheDirectory, "path");
    await mkdir(onPath);
    await symlink("/bin/true", join(onPath, "runsc"));
    const file = join(cacheDirectory, "given");
    await writeFile(file, program);
    const sha512 = sha512Of(program);
    await install({ source: from === "a file" ? file : url + from, sha512: sha512.toUpperCase() });
    const found = await findRunsc({ searchPath: onPath, cacheDirectory });
    expect(found).toMatchObject({
      path: join(cacheDirectory, "tools", `runsc-${sha512.slice(0, 16)}`),
      version: expect.stringMatching(/\d/) as string,
    });
    expect(sha512Of(await readFile(found!.path))).toBe(sha512);
    expect(await readdir(join(cacheDirectory, "building"))).toEqual([]);
  });

  test("can be installed again and replaced, and the replaced file stays for servers that run it", async () => {
    const newer = Buffer.concat([program, Buffer.from("\n")]);
    const file = join(cacheDirectory, "newer");
    await writeFile(file, newer);
    for (let times = 0; times < 2; times += 1) await install({ source: `${url}/runsc`, sha512: sha512Of(program) });
    await install({ source: file, sha512: sha512Of(newer) });
    expect((await findRunsc({ searchPath: "", cacheDirectory }))?.path).toContain(sha512Of(newer).slice(0, 16));
    expect(await readdir(join(cacheDirectory, "tools"))).toHaveLength(3);
  });

  test("gets memory images of its own, by its version", async () => {
    const snapshot = { id: "a", rootfs: "/nowhere" };
    const runsc = { path: "/runsc", version: "release-20261109.0", releasedAt: null };
    const keyOf = (version: string): Promise<string> =>
      toImageKey({ snapshot, runsc: { ...runsc, version }, flags: toRunscFlags({ rootless: false }), scratchBytes: 1 });
    expect(await keyOf("release-20261116.0")).not.toBe(await keyOf("release-20261109.0"));
    expect(await keyOf("release-20261109.0")).toBe(await keyOf("release-20261109.0"));
  });

  const wrong = "0".repeat(128);
  test.each([
    ["with another hash", "/runsc", () => wrong, () => `its SHA-512 hash is ${sha512Of(program)}, and --sha512 says ${wrong}`],
    ["that is a web page", "/page", () => sha512Of(page), () => "it is not a program for Linux (ELF)"],
    ["that is a script", "/script", () => sha512Of(script), () => "it is not a program for Linux (ELF)"],
    ["that is another program", "/other", () => sha512Of(other), () => "`--version` does not print the version of runsc"],
    ["that is too large", "/endless", () => wrong, () => "it is larger than 1000000 bytes"],
  ])("%s is refused, and the previous one stays", async (_, from, hashOf, why) => {
    await install({ source: `${url}/runsc`, sha512: sha512Of(program) });
    const before = await listCache();
    await expect(
      install({ source: url + from, sha512: hashOf(), maxBytes: from === "/endless" ? 1_000_000 : undefined }),
    ).rejects.toMatchObject({
      code: "RUNSC_REFUSED",
      message: `${url}${from} was not installed: ${why()}.`,
    });
    expect(await listCache()).toEqual(before);
    expect((await findRunsc({ searchPath: "", cacheDirectory }))?.path).toContain(sha512Of(program).slice(0, 16));
  });

  test.each([
    ["/missing", "the server answered with status 404"],
    ["/cut-off", "terminated"],
    ["/cut-off-chunk", "terminated"],
  ])("that cannot be downloaded (%s) is named with the reason, and nothing is installed", async (from, why) => {
    await expect(install({ source: url + from, sha512: sha512Of(program) })).rejects.toMatchObject({
      code: "RUNSC_UNREADABLE",
      message: expect.stringContaining(`${url}${from} could not be read: ${why}`) as string,
    });
    expect(await listCache()).toEqual(["building"]);
  });

  test("whose server cannot be reached, or whose file does not exist, is named with the reason", async () => {
    const sha512 = sha512Of(program);
    await expect(install({ source: "http://127.0.0.1:1/runsc", sha512 })).rejects.toThrow("http://127.0.0.1:1/runsc could not be read: ");
    await expect(install({ source: "/nowhere/runsc", sha512 })).rejects.toThrow("/nowhere/runsc could not be read: ENOENT");
    await expect(install({ source: `${url}/runsc`, sha512: "abc" })).rejects.toThrow(
      '--sha512 must be the 128 hexadecimal digits of a SHA-512 hash, not "abc".',
    );
    expect(await listCache()).toEqual(["building"]);
  });

  test("leaves nothing behind when its download is aborted", async () => {
    const controller = new AbortController();
    const started = new Promise<void>((resolve) => server.once("request", () => resolve()));
    const installed = install({ source: `${url}/endless`, sha512: sha512Of(program), signal: controller.signal });
    await started;
    controller.abort(new Error("stopped by the user"));
    await expect(installed).rejects.toThrow("stopped by the user");
    expect(await listCache()).toEqual(["building"]);
  });
});

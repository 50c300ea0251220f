import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entries, root, toPackageImports } from "./fixtures/entries.ts";
import { installPackage, type InstalledPackage } from "./fixtures/installed-package.ts";

/** Files that are used without an import. */
const readAtRunTime = [
  "dist/web/index.html",
  "dist/web/chart-app.html",
  "dist/examples/backends/market/market-server.js",
  "python/requirements.lock",
  "python/self_test.py",
  "python/sluice_tables/ask.py",
  "python/snapshot/finish_inside.py",
  "python/snapshot/verify_inside.py",
];

let installed: InstalledPackage;
beforeAll(async () => {
  installed = await installPackage();
}, 400_000);
afterAll(() => installed[Symbol.asyncDispose]());

describe("the tarball", () => {
  test("contains the files that are needed at run time, and nothing else", () => {
    const expected = [
      /^(package\.json|README\.md|LICENSE)$/,
      /^bin\/sluice$/,
      /^dist\/(?!web\/)[\w/-]+\.(js|d\.ts)$/,
      /^dist\/models\/demo-script\.json$/,
      /^dist\/web\/(index|chart-app)\.html(\.(br|gz))?$/,
      /^dist\/web\/assets\/[\w.-]+\.(js|css|woff2|svg)(\.(br|gz))?$/,
      /^python\/(requirements\.lock|self_test\.py|monty_prelude\.py)$/,
      /^python\/(sluice|sluice_tables|sluice_worker|snapshot)\/[\w/]+\.(py|json)$/,
    ];
    expect(installed.files.filter((file) => !expected.some((pattern) => pattern.test(file)))).toEqual([]);
    expect(installed.files.filter((file) => /\.test\.|fixtures|__pycache__/.test(file))).toEqual([]);
  });

  test("contains every entry with its types, and the data files", () => {
    const built = [...entries.values()].map((file) => file.replace(/^src\/(.*)\.ts$/, "dist/$1"));
    const wanted = [...built.flatMap((file) => [`${file}.js`, `${file}.d.ts`]), ...readAtRunTime];
    expect(wanted.filter((file) => !installed.files.includes(file))).toEqual([]);
  });
});

describe("a project that has only this package", { timeout: 300_000 }, () => {
  test("compiles programs against its types in strict mode", async () => {
    const programs = ["library.ts", "ai-sdk-app.ts", "mcp-client.ts", "http-client.ts"];
    for (const name of [...programs, "scripted-model.ts"]) {
      const text = await readFile(path.join(root, "examples", name), "utf8");
      const moved = toPackageImports(text, "examples").replace('"../bin/sluice"', '"../node_modules/.bin/sluice"');
      await writeFile(path.join(installed.project, name), moved);
    }
    const options = { strict: true, noUncheckedIndexedAccess: true, module: "nodenext", target: "esnext", types: ["node"] };
    const compilerOptions = { ...options, rewriteRelativeImportExtensions: true, outDir: "out" };
    await writeFile(path.join(installed.project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: programs }));
    await cp(path.join(root, "examples/data"), path.join(installed.project, "out/data"), { recursive: true });
    await mkdir(path.join(installed.project, "node_modules/@types"), { recursive: true });
    for (const name of ["@types/node", "undici-types"])
      await symlink(path.join(root, "node_modules", name), path.join(installed.project, "node_modules", name));
    const complaints = await installed.run(path.join(root, "node_modules/.bin/tsc"), ["-p", "."]).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
    // tsc also checks the declarations of other packages, which we cannot fix.
    expect(complaints.split("\n").filter((line) => /^\S/.test(line) && !line.startsWith("node_modules/@ai-sdk/"))).toEqual([]);
  });

  test("runs cells on the default driver", async () => {
    const { stdout } = await installed.run(process.execPath, ["out/library.js"]);
    expect(stdout.split("\n")).toEqual([
      'ok [{"day":1,"A":100,"B":50},{"day":2,"A":103,"B":49}]',
      "python_error KeyError line 2",
      "image 827×680 Prices of A and B on two days",
      'ok ["A","B"]',
      "",
    ]);
  });

  test.each(["sluice", "sluice/ai-sdk", "sluice/server"])("fails to import %s with a clear error on an old Node.js", async (entry) => {
    // Use the Node.js of the machine, whatever its version.
    const program = `await import("${entry}").then(() => console.log("loaded"), ({ name, message, hint }) => console.log(name, message, hint))`;
    const { stdout: version } = await installed.run("node", ["--version"]);
    const { stdout } = await installed.run("node", ["--input-type=module", "--eval", program]);
    const isNew = Number.parseInt(version.slice(1), 10) >= 24;
    const refusal = `UsageError The library sluice needs Node.js 24 or newer; this is ${version.trim()}. Run the program with a newer Node.js. The command \`sluice\` works with this version, because it includes its own Node.js.`;
    expect(stdout).toBe(`${isNew ? "loaded" : refusal}\n`);
  });

  test("runs an AI SDK app", async () => {
    const { stdout } = await installed.run(process.execPath, ["out/ai-sdk-app.js"]);
    expect(stdout.split("\n").at(-2)).toBe("The mean price of A over 300 days is 102.99.");
  });

  test("serves an MCP client", async () => {
    const { stdout } = await installed.run(process.execPath, ["out/mcp-client.js"]);
    expect(stdout).toContain(
      'code_interpreter: [{"item":"cake","value":2.5},{"item":"coffee","value":2},{"item":"tea","value":-8}]\nimage/png ',
    );
  });

  test("serves a program over HTTP", async () => {
    const { stdout } = await installed.run(process.execPath, ["out/http-client.js"]);
    expect(stdout.split("\n").slice(-4)).toEqual([
      "image 200 image/png",
      "chart 200 application/json",
      "date,open,high,low,close,volume",
      "",
    ]);
  });

  test("has a command that finds a sandbox", async () => {
    const { stdout } = await installed.run("npx", ["--no-install", "sluice", "doctor", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ default: expect.any(String) as string });
  });

  test("has a prepare command, which finds this machine ready", async () => {
    const { stderr } = await installed.run("npx", ["--no-install", "sluice", "prepare"]);
    expect(stderr.split("\n").at(-2)).toMatch(/^✓ Sandbox: self-test and memory image · .* is ready/);
  });

  test("has an ask command that answers with the bundled sample", async () => {
    const { stdout } = await installed.run("npx", ["--no-install", "sluice", "ask", "--model", "demo", "--json"]);
    const { outcome, artifacts } = JSON.parse(stdout) as { outcome: unknown; artifacts: { kind: string }[] };
    expect({ outcome, kinds: artifacts.map(({ kind }) => kind) }).toEqual({
      outcome: { stopReason: "complete_answer" },
      kinds: ["image", "chart"],
    });
  });
});

/** Builds the page and the chart app into dist/web, unless the existing build is up to date. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { build, type InlineConfig } from "vite";

const root = path.join(import.meta.dirname, "..");
const web = path.join(root, "web");
const target = path.join(root, "dist", "web");
const inputsFile = ".inputs";

// Always build for production: the NODE_ENV of a test runner would include the slow development build of React.
process.env["NODE_ENV"] = "production";

const inputs = hashInputs();
if (readBuiltInputs(target) === inputs) {
  process.stderr.write("✓ The page is up to date\n");
} else {
  const startedAt = Date.now();
  const workDirectory = `${target}.${process.pid}`;
  try {
    mkdirSync(workDirectory, { recursive: true });
    await buildPage(workDirectory);
    await buildChartApp(workDirectory);
    compress(workDirectory);
    writeFileSync(path.join(workDirectory, inputsFile), inputs);
    moveIntoPlace(workDirectory);
    process.stderr.write(`✓ The page · ${((Date.now() - startedAt) / 1000).toFixed(1)} s\n`);
  } finally {
    rmSync(workDirectory, { recursive: true, force: true });
  }
}

/** Hashes the sources by content and the packages by the lock file. */
function hashInputs(): string {
  const files = globSync(["web/**/*", "src/protocol/**/*.ts", "scripts/build-web.ts", "package-lock.json"], {
    cwd: root,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
  const hash = createHash("sha256");
  for (const file of files)
    hash
      .update(`${path.relative(root, file)}\0`)
      .update(readFileSync(file))
      .update("\0");
  return hash.digest("hex");
}

function readBuiltInputs(directory: string): string | null {
  const file = path.join(directory, inputsFile);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

function options(): InlineConfig {
  return { configFile: false, root: web, plugins: [react()], logLevel: "warn", publicDir: false };
}

async function buildPage(outDir: string): Promise<void> {
  await build({
    ...options(),
    // No data: URLs and no inline scripts, so that the content security policy of the page can forbid both.
    build: {
      outDir,
      emptyOutDir: false,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      target: "es2023",
      chunkSizeWarningLimit: 2000,
    },
  });
}

/** Builds a single file, because an MCP host shows it in a frame without network. */
async function buildChartApp(outDir: string): Promise<void> {
  const result = await build({
    ...options(),
    build: {
      write: false,
      cssCodeSplit: false,
      assetsInlineLimit: Number.MAX_SAFE_INTEGER,
      modulePreload: { polyfill: false },
      target: "es2023",
      chunkSizeWarningLimit: 2000,
      rolldownOptions: { input: path.join(web, "chart-app.html"), output: { codeSplitting: false } },
    },
  });
  if (!("output" in result)) throw new Error("Vite returned more than one build of the chart app.");
  const [scripts, styles]: [string[], string[]] = [[], []];
  for (const file of result.output) {
    if (file.type === "chunk") scripts.push(file.code);
    else if (file.fileName.endsWith(".css")) styles.push(String(file.source));
  }
  if (scripts.length !== 1) throw new Error(`The chart app must have one script, not ${scripts.length}.`);
  writeFileSync(path.join(outDir, "chart-app.html"), toOneFile(scripts.join("\n"), styles.join("\n")));
}

function toOneFile(script: string, style: string): string {
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Chart</title>`,
    `<style>${style.replaceAll("</", "<\\/")}</style></head><body><main id="root"></main>`,
    `<script type="module">${script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--")}</script></body></html>\n`,
  ].join("");
}

/** Writes compressed copies of the assets, so that the server does not compress them on request. */
function compress(directory: string): void {
  for (const name of globSync(["index.html", "assets/*.{js,css,svg}"], { cwd: directory })) {
    const file = path.join(directory, name);
    const bytes = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(bytes));
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** Moves the build into place. A concurrent build of the same inputs may have been faster; that is fine. */
function moveIntoPlace(workDirectory: string): void {
  rmSync(target, { recursive: true, force: true });
  try {
    renameSync(workDirectory, target);
  } catch (error) {
    if (readBuiltInputs(target) !== inputs) throw error;
  }
}

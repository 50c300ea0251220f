/** Builds the page and the chart app into dist/web; at once when nothing that they are made of has changed. */
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

// What is built does not depend on who builds it: a test runner's NODE_ENV would bring React's slow development build along.
process.env["NODE_ENV"] = "production";

const inputs = hashInputs();
if (builtFrom(target) === inputs) {
  process.stderr.write("✓ The page is built already\n");
} else {
  const startedAt = Date.now();
  const workplace = `${target}.${process.pid}`;
  try {
    mkdirSync(workplace, { recursive: true });
    await buildPage(workplace);
    await buildChartApp(workplace);
    compress(workplace);
    writeFileSync(path.join(workplace, inputsFile), inputs);
    takePlace(workplace);
    process.stderr.write(`✓ The page · ${((Date.now() - startedAt) / 1000).toFixed(1)} s\n`);
  } finally {
    rmSync(workplace, { recursive: true, force: true });
  }
}

/** Sources by content, packages by the lock. */
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

function builtFrom(directory: string): string | null {
  const file = path.join(directory, inputsFile);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

function options(): InlineConfig {
  return { configFile: false, root: web, plugins: [react()], logLevel: "warn", publicDir: false };
}

async function buildPage(outDir: string): Promise<void> {
  await build({
    ...options(),
    // Assets are files, never data: URLs; scripts have no inline part, so that the page's policy can forbid one.
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

/** One file without any other: an MCP host gives it a frame and no network. */
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
  if (!("output" in result)) throw new Error("Vite gave more than one build of the chart app.");
  const [scripts, styles]: [string[], string[]] = [[], []];
  for (const file of result.output) {
    if (file.type === "chunk") scripts.push(file.code);
    else if (file.fileName.endsWith(".css")) styles.push(String(file.source));
  }
  if (scripts.length !== 1) throw new Error(`The chart app has ${scripts.length} scripts and must be one file.`);
  writeFileSync(path.join(outDir, "chart-app.html"), toOneFile(scripts.join("\n"), styles.join("\n")));
}

function toOneFile(script: string, style: string): string {
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Chart</title>`,
    `<style>${style.replaceAll("</", "<\\/")}</style></head><body><main id="root"></main>`,
    `<script type="module">${script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--")}</script></body></html>\n`,
  ].join("");
}

/** What browsers load, once more in the forms that they would rather have: the server compresses nothing while they wait. */
function compress(directory: string): void {
  for (const name of globSync(["index.html", "assets/*.{js,css,svg}"], { cwd: directory })) {
    const file = path.join(directory, name);
    const bytes = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(bytes));
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** Another build may have been faster; if it was made of the same, it is as good. */
function takePlace(workplace: string): void {
  rmSync(target, { recursive: true, force: true });
  try {
    renameSync(workplace, target);
  } catch (error) {
    if (builtFrom(target) !== inputs) throw error;
  }
}

/** Runs the checks of `npm run check`, and with the argument `test` also the tests of `npm test`. Ends with one summary line. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const root = path.join(import.meta.dirname, "..");
const binaries = path.join(root, "node_modules", ".bin");
const environment = { ...process.env, PATH: `${binaries}:${process.env["PATH"]}` };
const temporary = mkdtempSync(path.join(tmpdir(), "sluice-check-"));
process.once("exit", () => rmSync(temporary, { recursive: true, force: true }));

const total: Counts = { passed: 0, failed: 0, skipped: 0 };
runCheck("types", "tsc", ["--noEmit"]);
runCheck("types of the page", "tsc", ["--noEmit", "--project", "web"]);
runCheck("lint", "oxlint", []);
runCheck("format", "oxfmt", ["--check"]);
runCheck("unused", "knip", []);
if (process.argv[2] === "test") {
  runVitest();
  for (const name of ["ruff", "format", "mypy"]) runCheck(`python ${name}`, "node", ["scripts/python-check.ts", name]);
  runPytest();
}
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}\n`);
process.exitCode = total.failed === 0 ? 0 : 1;

/** Runs a tool and counts it as one check. */
function runCheck(title: string, program: string, args: readonly string[]): void {
  add(run(title, program, args) === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 });
}

function runVitest(): void {
  const report = path.join(temporary, "vitest.json");
  const status = run("vitest", "vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`]);
  const counts = readCounts(() => {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8")) as Record<string, number>;
    return { passed: numPassedTests ?? 0, failed: numFailedTests ?? 0, skipped: numPendingTests ?? 0 };
  });
  add(withStatus(counts, status));
}

function runPytest(): void {
  const { status, stdout } = spawnSync("node", ["scripts/python-check.ts", "pytest"], {
    cwd: root,
    env: environment,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 2 ** 28,
  });
  process.stdout.write(stdout);
  const last = stdout.trim().split("\n").at(-1) ?? "";
  const number = (word: string): number => Number(new RegExp(`(\\d+) ${word}`).exec(last)?.[1] ?? 0);
  add(withStatus({ passed: number("passed"), failed: number("failed") + number("errors?"), skipped: number("skipped") }, status));
}

/** A run can fail without a failed test, for example because a file does not load. Count that as one failure. */
function withStatus(counts: Counts, status: number | null): Counts {
  return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

function readCounts(read: () => Counts): Counts {
  try {
    return read();
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

function add({ passed, failed, skipped }: Counts): void {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}

function run(title: string, program: string, args: readonly string[]): number | null {
  const start = Date.now();
  process.stdout.write(`\n▸ ${title}\n`);
  const { status } = spawnSync(program, args, { cwd: root, env: environment, stdio: ["ignore", "inherit", "inherit"] });
  process.stdout.write(`${status === 0 ? "✓" : "✗"} ${title} (${((Date.now() - start) / 1000).toFixed(1)} s)\n`);
  return status;
}

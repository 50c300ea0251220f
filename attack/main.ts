/**
 * `npm run attack [-- OPTIONS]`: a hostile tenant and a well-behaved one on one server. Exits with 1 if a promise was broken or something was left behind;
 * a missed goal is only reported.
 */
import { parseArgs } from "node:util";
import { allCases } from "./all-cases.ts";
import { openAttackRun, type AttackRow } from "./run-attack.ts";
import { toAttackTable } from "./to-attack-table.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    case: { type: "string", multiple: true, default: [] },
    driver: { type: "string", default: "gvisor" },
  },
});
const names = allCases.map(({ name }) => name);
const seed = Number(values.seed);
if (!values.case.every((name) => names.includes(name)) || !Number.isSafeInteger(seed)) {
  process.stderr.write(
    `Usage: npm run attack -- [--short] [--json] [--seed N] [--driver DRIVER] [--case NAME]…, where NAME is one of: ${names.join(", ")}\n`,
  );
  process.exitCode = 2;
} else await main();

async function main(): Promise<void> {
  await using run = await openAttackRun({ driver: values.driver, seed, isShort: values.short });
  const end = async (): Promise<void> => {
    await run[Symbol.asyncDispose]();
    process.exit(1);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void end());
  const rows: AttackRow[] = [];
  for (const attackCase of allCases) {
    if (values.case.length > 0 && !values.case.includes(attackCase.name)) continue;
    process.stderr.write(`${attackCase.name}: ${attackCase.what}\n`);
    const row = await run.attack(attackCase);
    process.stderr.write(`  ${row.seconds.toFixed(1)} s, ${row.failures.length} promises broken\n`);
    rows.push(row);
  }
  const report = { seed, isShort: values.short, quiet: run.quiet, rows, left: await run.end() };
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : `${toAttackTable(report)}\n`);
  const isKept = [run.quiet, ...rows].every(({ failures }) => failures.length === 0) && report.left.length === 0;
  process.exitCode = isKept ? 0 : 1;
}

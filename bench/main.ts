/** `npm run bench -- NAME [--json]` runs a benchmark. Exits with 0 if everything could be measured, even if targets were missed. */
import { parseArgs } from "node:util";
import type { BenchRow } from "./bench-row.ts";
import { toBenchTable } from "./to-bench-table.ts";

const benches: Readonly<Record<string, () => Promise<{ run(): Promise<BenchRow[]> }>>> = {
  execute: () => import("./execute.ts"),
  interpreter: () => import("./interpreter.ts"),
  mcp: () => import("./mcp.ts"),
  page: () => import("./page.ts"),
  python: () => import("./python.ts"),
  sandbox: () => import("./sandbox.ts"),
  serve: () => import("./serve.ts"),
  turn: () => import("./turn.ts"),
};

const { positionals, values } = parseArgs({ allowPositionals: true, options: { json: { type: "boolean", default: false } } });
const load = benches[positionals[0] ?? ""];
if (positionals.length !== 1 || load === undefined) {
  process.stderr.write(`Usage: npm run bench -- NAME [--json], where NAME is one of: ${Object.keys(benches).join(", ")}\n`);
  process.exitCode = 2;
} else {
  const rows = await (await load()).run();
  process.stdout.write(values.json ? `${JSON.stringify(rows, null, 2)}\n` : `${toBenchTable(rows)}\n`);
}

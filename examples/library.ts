/**
 * Runs cells in a sandbox from your own program, without a model. Run it: `node examples/library.ts`. In a project with the package, import from "sluice".
 */
import { cacheDirectory, createRuntime } from "../src/index.ts";

await using runtime = createRuntime({ cacheDirectory: cacheDirectory() });
await using cellSession = await runtime.openCellSession();

// The bytes become a Python variable. The sandbox parses them when a cell uses it.
cellSession.bind("prices", { format: "csv", bytes: Buffer.from("day,symbol,price\n1,A,100\n2,A,103\n1,B,50\n2,B,49\n") });

const first = await cellSession.run({
  code: `table = to_frame(prices).pivot(index="day", columns="symbol", values="price")\nset_result(table)`,
});
console.log(first.status, first.resultJson);

// A failed cell is an outcome, not an exception. It leaves no trace: the table is unchanged.
const failed = await cellSession.run({ code: `table = table.drop(columns="A")\ntable["C"]` });
console.log(failed.status, failed.error?.type, `line ${failed.error?.line}`);

const last = await cellSession.run({
  code: `table.plot(title="Price")\nsave_figure("Prices of A and B on two days")\nset_result(list(table.columns))`,
});
for (const artifact of last.artifacts)
  if (artifact.kind === "image") console.log(artifact.kind, `${artifact.width}×${artifact.height}`, artifact.alt);
console.log(last.status, last.resultJson);

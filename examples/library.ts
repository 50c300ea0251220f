/**
 * Cells in a sandbox, from a program of your own, without a model. Run it: `node examples/library.ts`. In a project that has the package, import from "sluice".
 */
import { cacheDirectory, createRuntime } from "../src/index.ts";

await using runtime = createRuntime({ cacheDirectory: cacheDirectory() });
await using session = await runtime.openCellSession();

// Bytes become a Python name. They are parsed inside, and only by a cell that uses it.
session.bind("prices", { format: "csv", bytes: Buffer.from("day,symbol,price\n1,A,100\n2,A,103\n1,B,50\n2,B,49\n") });

const first = await session.run({
  code: `table = to_frame(prices).pivot(index="day", columns="symbol", values="price")\nset_result(table)`,
});
console.log(first.status, first.resultJson);

// A failed cell is an outcome and no exception, and nothing of it is left: the table is as it was.
const failed = await session.run({ code: `table = table.drop(columns="A")\ntable["C"]` });
console.log(failed.status, failed.error?.type, `line ${failed.error?.line}`);

const last = await session.run({
  code: `table.plot(title="Price")\nsave_figure("Prices of A and B on two days")\nset_result(list(table.columns))`,
});
for (const artifact of last.artifacts)
  if (artifact.kind === "image") console.log(artifact.kind, `${artifact.width}×${artifact.height}`, artifact.alt);
console.log(last.status, last.resultJson);

import { cacheDirectory } from "../../config/cache-directory.ts";
import { createRuntime } from "../../create-runtime.ts";

/** `sluice prepare`: makes what the default driver keeps between runs (the memory image) and tries the sandbox once. */
export async function prepareCommand(_args: string[], signal: AbortSignal): Promise<number> {
  await using runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
  const started = performance.now();
  const driver = await runtime.driver(signal);
  await driver.prepare({ snapshot: await runtime.snapshot(), signal });
  process.stderr.write(`sandbox: ${driver.name} is ready (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);
  return 0;
}

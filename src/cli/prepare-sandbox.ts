import path from "node:path";
import { createRuntime } from "../create-runtime.ts";
import { diskBytes } from "../snapshot/disk-bytes.ts";
import { runStep, type OnProgress } from "../snapshot/progress.ts";

export interface PrepareOptions {
  readonly cacheDirectory: string;
  readonly searchPath: string;
  readonly onProgress?: OnProgress;
  readonly signal: AbortSignal;
}

/** Makes what the default driver keeps between runs (the memory image) and tries its sandbox once, unless that is done already. */
export async function prepareSandbox({ cacheDirectory, searchPath, onProgress, signal }: PrepareOptions): Promise<void> {
  await using runtime = createRuntime({ cacheDirectory, searchPath, poolSize: 0 });
  const imagesBytes = async (): Promise<number> => await diskBytes(path.join(cacheDirectory, "images")).catch(() => 0);
  await runStep("Sandbox: self-test and memory image", onProgress, async () => {
    const before = await imagesBytes();
    const driver = await runtime.driver(signal);
    await driver.prepare({ snapshot: await runtime.snapshot(), signal });
    const made = (await imagesBytes()) - before;
    return { value: undefined, detail: `${driver.name} is ready`, ...(made > 0 && { bytes: made }) };
  });
}

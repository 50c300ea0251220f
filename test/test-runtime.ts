import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../src/create-runtime.ts";
import type { DriverName } from "../src/sandbox/contract.ts";

/** The drivers that the tests use. If a driver does not work on this machine, its tests fail: a skipped security test must not look green. */
export const testedDrivers: readonly DriverName[] = [process.getuid?.() === 0 ? "gvisor" : "gvisor-rootless", "bubblewrap"];

/** Creates a real runtime with the snapshot that set-up built. */
export function openTestRuntime(driver: DriverName, options: Partial<RuntimeOptions> = {}): Runtime {
  return createRuntime({ cacheDirectory: cacheDirectory(), driver, poolSize: 0, ...options });
}

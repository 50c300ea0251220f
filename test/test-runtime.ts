import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../src/create-runtime.ts";
import type { DriverName } from "../src/sandbox/contract.ts";

/** The drivers that every behaviour is shown on. A machine that cannot run one fails the tests: a skipped security test is not a green one. */
export const testedDrivers: readonly DriverName[] = ["gvisor", "bubblewrap"];

/** A real runtime on the snapshot that set-up built. */
export function openTestRuntime(driver: DriverName, options: Partial<RuntimeOptions> = {}): Runtime {
  return createRuntime({ cacheDirectory: cacheDirectory(), driver, poolSize: 0, ...options });
}

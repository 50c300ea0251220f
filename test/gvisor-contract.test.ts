import { cacheDirectory } from "../src/config/cache-directory.ts";
import { createGvisorDriver } from "../src/sandbox/drivers/gvisor/gvisor-driver.ts";
import { describeDriverContract } from "./driver-contract.ts";

describeDriverContract("gvisor", (runDirectory) => createGvisorDriver({ cacheDirectory: cacheDirectory(), runDirectory }));

import { cacheDirectory } from "../src/config/environment.ts";
import { createGvisorDriver } from "../src/sandbox/drivers/gvisor/create-gvisor-driver.ts";
import { describeDriverContract } from "./driver-contract.ts";

describeDriverContract("gvisor", (runDirectory) => createGvisorDriver({ cacheDirectory: cacheDirectory(), runDirectory }));

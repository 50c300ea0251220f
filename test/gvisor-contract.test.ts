import { cacheDirectory } from "../src/config/environment.ts";
import { createGvisorDriver } from "../src/sandbox/drivers/gvisor/create-gvisor-driver.ts";
import { describeDriverContract } from "./driver-contract.ts";

/** An ordinary user can only run the rootless driver; ordinary-user.test.ts runs this file as one. */
const rootless = process.getuid?.() !== 0;

describeDriverContract(rootless ? "gvisor-rootless" : "gvisor", (runDirectory) =>
  createGvisorDriver({ cacheDirectory: cacheDirectory(), runDirectory, rootless }),
);

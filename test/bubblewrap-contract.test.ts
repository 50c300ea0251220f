import { createBubblewrapDriver } from "../src/sandbox/drivers/bubblewrap/create-bubblewrap-driver.ts";
import { describeDriverContract } from "./driver-contract.ts";

describeDriverContract("bubblewrap", (runDirectory) => createBubblewrapDriver({ runDirectory }));

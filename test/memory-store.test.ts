import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { describeArtifactStore } from "./artifact-store-contract.ts";

describeArtifactStore("memory", async () => createMemoryStore());

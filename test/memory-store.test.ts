import { createMemoryStore } from "../src/artifacts/create-memory-store.ts";
import { describeArtifactStore } from "./artifact-store-contract.ts";

describeArtifactStore("memory", async () => createMemoryStore());

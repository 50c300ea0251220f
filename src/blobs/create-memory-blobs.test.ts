import { describeBlobStore } from "../../test/blob-store-contract.ts";
import { createMemoryBlobs } from "./create-memory-blobs.ts";

describeBlobStore("memory", () => createMemoryBlobs("blobs"));

import { serveThread } from "../concurrency/worker-thread.ts";
import { checkArtifactJson, type ArtifactCheckRequest } from "./create-artifact-checker.ts";
import { readPng } from "./read-png.ts";

serveThread(({ kind, bytes }: ArtifactCheckRequest) =>
  kind === "png" ? readPng(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) : checkArtifactJson(kind, bytes),
);

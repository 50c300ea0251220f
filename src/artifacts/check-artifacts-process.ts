import { serveThread } from "../concurrency/worker-thread.ts";
import type { ArtifactQuestion } from "./create-image-checker.ts";
import { judgeJson } from "./judge-json.ts";
import { readPng } from "./read-png.ts";

serveThread(({ kind, bytes }: ArtifactQuestion) =>
  kind === "png" ? readPng(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) : judgeJson(kind, bytes),
);

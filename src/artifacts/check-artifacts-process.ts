import { parentPort } from "node:worker_threads";
import type { ArtifactQuestion } from "./create-image-checker.ts";
import { judgeJson } from "./judge-json.ts";
import { readPng } from "./read-png.ts";

parentPort!.on("message", ({ kind, bytes }: ArtifactQuestion) => {
  parentPort!.postMessage(
    kind === "png" ? readPng(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) : { why: judgeJson(kind, bytes) },
  );
});

import { parentPort } from "node:worker_threads";
import { readPng } from "./read-png.ts";

parentPort!.on("message", ({ id, bytes }: { id: number; bytes: Uint8Array }) => {
  parentPort!.postMessage({ id, found: readPng(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)) });
});

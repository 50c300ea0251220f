import { parentPort } from "node:worker_threads";
import { readPng } from "./read-png.ts";

parentPort!.on("message", (bytes: Uint8Array) => {
  parentPort!.postMessage(readPng(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
});

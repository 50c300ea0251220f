import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FrameChannel } from "../../contract.ts";
import type { RunscProcess } from "./runsc-process.ts";
import { expectFrame } from "./worker-greeting.ts";

const NAME = "heap";

/** Its presence tells the worker that an image is to be made, and that it may give its heap away. */
export async function createHeapFile(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o755 });
  await writeFile(join(directory, NAME), "", { mode: 0o444 });
}

/** Waits until the stack is imported. What the worker sends of its heap until then is written, and the worker told when all of it is: it maps the file over its heap. */
export async function awaitImportAndHeap({ directory, ...channel }: HeapOptions): Promise<void> {
  await using file = await open(join(directory, NAME), "w");
  for (;;) {
    const { header, body } = await expectFrame({ ...channel, type: ["heap", "heap-end", "imported"] });
    if (header.type === "imported") return;
    if (header.type === "heap") await file.write(body);
    else await channel.channel.send({ type: "heap-written" });
  }
}

interface HeapOptions {
  readonly directory: string;
  readonly channel: FrameChannel;
  readonly process: RunscProcess;
  readonly signal: AbortSignal;
}

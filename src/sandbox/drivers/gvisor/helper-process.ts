import { type HelperAnswer, type HelperRequest, startProcess, type StartedProcess, type StartRequest } from "./process-starter.ts";

/** The program of the helper that starts processes for a host (see process-starter.ts). It ends when the host ends or disconnects. */
const started = new Map<number, StartedProcess>();

process.on("message", (request: HelperRequest) => {
  if ("kill" in request) started.get(request.id)?.kill();
  else void start(request.id, request.start);
});
process.once("disconnect", () => process.exit(0));

async function start(id: number, request: StartRequest): Promise<void> {
  try {
    const child = await startProcess(request);
    started.set(id, child);
    answer({ id, pid: child.pid }, child.channel);
    const exit = await child.exited;
    started.delete(id);
    answer({ id, exit });
  } catch (error) {
    answer({ id, failure: (error as Error).message });
  }
}

function answer(message: HelperAnswer, channel?: StartedProcess["channel"]): void {
  if (process.connected) process.send!(message, channel, undefined, () => {});
}

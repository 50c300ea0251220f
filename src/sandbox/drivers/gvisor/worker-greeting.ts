import { SandboxLostError } from "../../../errors/sluice-error.ts";
import type { Frame, FrameChannel, SandboxLimits } from "../../contract.ts";
import type { RunscProcess } from "./runsc-process.ts";

/** Waits for one frame of this type, or of one of these; anything else, an end or an abort is an error that says what came instead. */
export async function expectFrame({ channel, type, process, signal }: ExpectOptions): Promise<Frame> {
  const ended = process.exited.then(async ({ exitCode, signal: by }) => {
    // The last words on standard error arrive after the exit.
    await new Promise((resolve) => setTimeout(resolve, 20));
    throw startFailed(`runsc ended (${by === null ? `exit status ${exitCode}` : by}) before the worker answered`, process.stderr());
  });
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  const frame = await Promise.race([receiveOrWait(channel), ended, aborted]);
  if (frame.header.type === "lost") throw startFailed(String(frame.header["detail"]), process.stderr());
  const due = [type].flat();
  if (!due.includes(frame.header.type)) {
    throw startFailed(`the worker sent "${frame.header.type}" where "${due.join('" or "')}" was due`, process.stderr());
  }
  return frame;
}

interface ExpectOptions {
  readonly channel: FrameChannel;
  readonly type: string | readonly string[];
  readonly process: RunscProcess;
  readonly signal: AbortSignal;
}

/** The end of the channel says less than runsc's exit, which follows it: wait for that. */
async function receiveOrWait(channel: FrameChannel): Promise<Frame> {
  const frame = await channel.receive();
  if (frame !== null) return frame;
  return new Promise<Frame>((_, reject) => {
    setTimeout(() => reject(startFailed("the worker closed its channel", "")), 2_000).unref();
  });
}

/** The rlimits of this lease; the worker sets them before any user code runs. */
export function toHello({ nonce, limits }: { nonce: string; limits: SandboxLimits }): Frame["header"] {
  return {
    type: "hello",
    nonce,
    spare: false,
    rlimits: { NOFILE: limits.openFiles, NPROC: limits.processes, CORE: 0, memory: limits.memoryBytes },
  };
}

function startFailed(what: string, stderr: string): SandboxLostError {
  const words = stderr.trim().slice(-1_500);
  return new SandboxLostError({
    code: "SANDBOX_START",
    message: `The gVisor sandbox did not start: ${what}.${words === "" ? "" : ` It said: ${words}`}`,
    details: { stderr: words },
  });
}

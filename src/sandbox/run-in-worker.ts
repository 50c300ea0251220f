import { StringDecoder } from "node:string_decoder";
import type { z } from "zod";
import { SandboxLostError } from "../errors/sluice-error.ts";
import { signalName } from "../processes.ts";
import type { ContentKind, EndedFrame, RunningFrame, ScriptFrame } from "../protocol/worker-frames.ts";
import { ArrivingContents, type ContentLimits, type Refusal } from "./arriving-contents.ts";
import type { Death, Frame, Lease, Usage } from "./contract.ts";
import { protocolViolation } from "./frame-channel.ts";

type AnyFrame = RunningFrame | ScriptFrame;
type LastFrame<Sent> = Extract<Sent, { type: "done" | "ended" }>;

/**
 * How the run of a cell or script ended. `lost` continues the sentence "The sandbox is gone: ". `refused`: a limit was exceeded, and everything that the
 * sandbox sent after that was dropped.
 */
export type WorkerEnd<Last> = { readonly refused?: Refusal } & (
  | { readonly frame: Last; readonly body: Uint8Array }
  | { readonly lost: string; readonly brokeProtocol?: boolean }
);

export interface WorkerRun<Sent extends AnyFrame> {
  readonly lease: Lease;
  readonly firstFrame: Frame["header"] & { readonly cell: number };
  readonly code: Uint8Array;
  /** Schema of the frames that the worker may send. Any other frame is a protocol violation. */
  readonly frames: z.ZodType<Sent>;
  readonly streams: Readonly<Record<"stdout" | "stderr", StreamText>>;
  /** Limit for each stream. The worker enforces it, so a sandbox that sends more is hostile. */
  readonly maxOutputBytes: number;
  readonly contentLimits: ContentLimits;
  /** Called for every other frame. Takes its contents from `contents`. */
  onFrame(frame: Exclude<Sent, HandledFrame>, contents: ArrivingContents): Promise<Refusal | null> | Refusal | null;
  /** Called once, when a frame was refused: has to end the run, because the sandbox may go on sending. */
  onRefused(): void;
}

interface HandledFrame {
  readonly type: "done" | "ended" | "output" | "lost" | "chunk";
}

/** The marker of omitted bytes does not count towards the output limit. */
const OUTPUT_SLACK_BYTES = 64 * 1024;

/** Sends the code of a cell or script to the worker and handles its frames until the run ends. A lost sandbox is a result, not an exception. */
export async function runInWorker<Sent extends AnyFrame>(run: WorkerRun<Sent>): Promise<WorkerEnd<LastFrame<Sent>>> {
  const { lease, firstFrame, code, streams, maxOutputBytes, onFrame, onRefused } = run;
  const contents = new ArrivingContents(run.contentLimits);
  let refused: Refusal | undefined;
  const refuse = (refusal: Refusal): void => {
    refused = refusal;
    onRefused();
  };
  try {
    await lease.channel.send(firstFrame, code);
    for (;;) {
      const raw = await lease.channel.receive();
      if (raw === null) return { lost: "it closed its channel", refused };
      const frame = parseFrame(raw, run);
      if (frame.type === "lost") return { lost: frame.detail, refused };
      if (frame.type === "ended") return { frame: frame as LastFrame<Sent>, body: raw.body, refused };
      if (frame.type === "output") {
        const stream = streams[frame.stream];
        stream.add(raw.body, frame.omittedBytes ?? 0);
        if (stream.receivedBytes > maxOutputBytes + OUTPUT_SLACK_BYTES) throw protocolViolation("more output than allowed");
        continue;
      }
      const tooMuch = refused === undefined ? contents.add(contentOf(frame), raw.body) : null;
      if (frame.type === "done")
        return { frame: frame as LastFrame<Sent>, body: contents.take("result"), refused: refused ?? tooMuch ?? undefined };
      if (tooMuch !== null) refuse(tooMuch);
      if (frame.type === "chunk" || refused !== undefined) continue;
      const refusal = await onFrame(frame as Exclude<Sent, HandledFrame>, contents);
      if (refusal !== null) refuse(refusal);
    }
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
    const { sent } = error.details;
    return typeof sent === "string"
      ? { lost: `it sent ${sent}`, brokeProtocol: true, refused }
      : { lost: "its channel is closed", refused };
  }
}

/** The content to which the body of a frame belongs. */
function contentOf(frame: Exclude<AnyFrame, { type: "ended" | "output" | "lost" }>): ContentKind {
  if (frame.type === "chunk") return frame.of;
  return ({ artifact: "data", call: "params", done: "result" } as const)[frame.type];
}

function parseFrame<Sent extends AnyFrame>({ header }: Frame, { frames, firstFrame }: WorkerRun<Sent>): Sent {
  const parsed = frames.safeParse(header);
  if (!parsed.success) throw protocolViolation(`an unexpected frame of type ${JSON.stringify(header.type).slice(0, 60)}`);
  const frame = parsed.data;
  if ("cell" in frame && frame.cell !== firstFrame.cell)
    throw protocolViolation(`a frame for cell ${frame.cell} while cell ${firstFrame.cell} was running`);
  return frame;
}

/** Collects one output stream of a cell or script: passes text on as it arrives, and keeps it for the outcome. */
export interface StreamText {
  add(bytes: Uint8Array, omittedBytes: number): void;
  readonly text: string;
  /** Bytes that the worker cut from the middle. */
  readonly omittedBytes: number;
  readonly receivedBytes: number;
}

interface StreamTextOptions {
  /** The text to insert where the worker cut something out. Default: nothing. */
  readonly toMark?: (omittedBytes: number) => string;
  readonly onText?: (text: string) => void;
}

export function createStreamText({ toMark = () => "", onText }: StreamTextOptions = {}): StreamText {
  const parts: string[] = [];
  const decoder = new StringDecoder("utf8");
  let omitted = 0;
  let received = 0;

  const push = (text: string): void => {
    if (text === "") return;
    parts.push(text);
    onText?.(text);
  };

  return {
    add(bytes, omittedBytes) {
      received += bytes.length;
      if (omittedBytes > 0) {
        omitted += omittedBytes;
        push(decoder.end());
        push(toMark(omittedBytes));
      }
      push(decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)));
    },
    get text() {
      const rest = decoder.end();
      if (rest !== "") parts.push(rest);
      return parts.join("");
    },
    get omittedBytes() {
      return omitted;
    },
    get receivedBytes() {
      return received;
    },
  };
}

/** Why a cell or script ended without an answer. */
export type LostCause =
  | { readonly kind: "out_of_memory" }
  /** Its process ended. `how` continues a sentence: "was killed by SIGSEGV (signal 11)". */
  | { readonly kind: "crashed"; readonly how: string }
  | { readonly kind: "lost"; readonly detail: string };

export interface UnansweredRun {
  /** Null when the worker did not report that the process ended. */
  readonly ended: EndedFrame | null;
  /** As in WorkerEnd. */
  readonly lost: string;
  readonly lease: Lease;
  readonly before: Usage;
  readonly after: Usage;
  /** If true, wait a moment for the driver to report how the sandbox died. */
  readonly mayBeDead: boolean;
}

/** Finds the cause from what the host itself measured, because the worker cannot be trusted. */
export async function findLostCause({ ended, lost, lease, before, after, mayBeDead }: UnansweredRun): Promise<LostCause> {
  const death = mayBeDead ? await waitForDeath(lease) : null;
  if (after.memoryKills > before.memoryKills || death?.cause === "out_of_memory") return { kind: "out_of_memory" };
  if (ended !== null) return { kind: "crashed", how: describeEnded(ended) };
  const how = death !== null && death.cause !== "closed" ? ` ${death.detail}` : "";
  return { kind: "lost", detail: `The sandbox is gone: ${lost}.${how}` };
}

/** How the sandbox died. Null if it is still alive after two seconds. */
export async function waitForDeath({ died }: Lease): Promise<Death | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), 2_000);
  return await Promise.race([died, promise]).finally(() => clearTimeout(timer));
}

function describeEnded({ signal, exitCode }: EndedFrame): string {
  return signal === undefined
    ? `exited with status ${exitCode ?? "unknown"} (os._exit, or its channel was closed)`
    : `was killed by ${signalName(signal) ?? "a signal"} (signal ${signal})`;
}

import { StringDecoder } from "node:string_decoder";
import type { z } from "zod";
import { SandboxLostError } from "../errors/sluice-error.ts";
import { signalName } from "../processes/last-words.ts";
import type { EndedFrame, RunningFrame, ScriptFrame } from "../protocol/worker-frames.ts";
import type { Death, Frame, Lease, Usage } from "./contract.ts";
import { outOfPlace } from "./frame-channel.ts";

type AnyFrame = RunningFrame | ScriptFrame;
type LastFrame<Sent> = Extract<Sent, { type: "done" | "ended" }>;

/** How the conversation about a cell or a script ended. */
export type WorkerEnd<Last> =
  | { readonly frame: Last; readonly body: Uint8Array }
  | { readonly lost: string; readonly byHost?: boolean }
  | { readonly refused: string };

export interface Conversation<Sent extends AnyFrame> {
  readonly lease: Lease;
  /** The frame that begins it. */
  readonly begin: Frame["header"] & { readonly cell: number };
  readonly code: Uint8Array;
  /** What the sandbox may send; anything else ends it. */
  readonly frames: z.ZodType<Sent>;
  readonly streams: Readonly<Record<"stdout" | "stderr", StreamText>>;
  /** Of each stream. The worker cuts to its limits; a sandbox that sends more is hostile. */
  readonly maxOutputBytes: number;
  /** Takes every other frame. Text that it returns is why the conversation ends here. */
  take(frame: Exclude<Sent, { type: "done" | "ended" | "output" | "lost" }>, body: Uint8Array): Promise<string | null> | string | null;
}

/** Slack over the output limits for the marker bytes. */
const OUTPUT_SLACK_BYTES = 64 * 1024;

/** Sends the code to the worker and takes its frames until the cell or script is over. */
export async function converse<Sent extends AnyFrame>(conversation: Conversation<Sent>): Promise<WorkerEnd<LastFrame<Sent>>> {
  const { lease, begin, code, streams, maxOutputBytes, take } = conversation;
  try {
    await lease.channel.send(begin, code);
    for (;;) {
      const raw = await lease.channel.receive();
      if (raw === null) return { lost: "it closed its channel" };
      const frame = parseFrame(raw, conversation);
      if (frame.type === "done" || frame.type === "ended") return { frame: frame as LastFrame<Sent>, body: raw.body };
      if (frame.type === "lost") return { lost: frame.detail };
      if (frame.type === "output") {
        const stream = streams[frame.stream];
        stream.add(raw.body, frame.omittedBytes ?? 0);
        if (stream.receivedBytes > maxOutputBytes + OUTPUT_SLACK_BYTES) throw outOfPlace("more output than was allowed");
      } else {
        const refused = await take(frame as Parameters<typeof take>[0], raw.body);
        if (refused !== null) return { refused };
      }
    }
  } catch (error) {
    if (error instanceof SandboxLostError) return { lost: error.message, byHost: error.code === "SANDBOX_PROTOCOL" };
    throw error;
  }
}

function parseFrame<Sent extends AnyFrame>({ header }: Frame, { frames, begin }: Conversation<Sent>): Sent {
  const parsed = frames.safeParse(header);
  if (!parsed.success) throw outOfPlace(`a frame of type ${JSON.stringify(header.type).slice(0, 60)} that does not belong there`);
  const frame = parsed.data;
  if ("cell" in frame && frame.cell !== begin.cell) throw outOfPlace(`a frame for cell ${frame.cell} while cell ${begin.cell} runs`);
  return frame;
}

/** Why a cell or script ended without an answer. */
export type LostCause =
  | { readonly kind: "out_of_memory" }
  /** Its process ended; `how` continues a sentence: "died by SIGSEGV (signal 11)". */
  | { readonly kind: "crashed"; readonly how: string }
  | { readonly kind: "lost"; readonly detail: string };

export interface Unanswered {
  /** Null when the worker did not say that the process ended. */
  readonly ended: EndedFrame | null;
  /** What is known of a sandbox that is gone. */
  readonly lost: string;
  readonly lease: Lease;
  readonly before: Usage;
  readonly after: Usage;
  /** The sandbox may be dead: its driver is asked how it died. */
  readonly mayBeDead: boolean;
}

/** The cause, from what the host itself saw. */
export async function findCause({ ended, lost, lease, before, after, mayBeDead }: Unanswered): Promise<LostCause> {
  const death = mayBeDead ? await deathOf(lease) : null;
  if (after.memoryKills > before.memoryKills || death?.cause === "out_of_memory") return { kind: "out_of_memory" };
  if (ended !== null) return { kind: "crashed", how: describeEnded(ended) };
  const how = death !== null && death.cause !== "closed" ? ` (${death.detail})` : "";
  return { kind: "lost", detail: `The sandbox is gone: ${lost}${how}.` };
}

/** How the sandbox died, if that is known within a moment. */
export async function deathOf({ died }: Lease): Promise<Death | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), 2_000);
  return await Promise.race([died, promise]).finally(() => clearTimeout(timer));
}

function describeEnded({ signal, exitCode }: EndedFrame): string {
  return signal === undefined
    ? `ended by itself with exit status ${exitCode ?? "unknown"} (os._exit, or its channel was closed)`
    : `died by ${signalName(signal) ?? "a signal"} (signal ${signal})`;
}

/** Collects one stream of a cell or script: live for whoever listens, and whole (but for what the worker cut from its middle) for the outcome. */
export interface StreamText {
  add(bytes: Uint8Array, omittedBytes: number): void;
  readonly text: string;
  readonly omittedBytes: number;
  /** Bytes received. The worker cuts to the limit; a sandbox that sends more is hostile. */
  readonly receivedBytes: number;
}

export interface StreamTextOptions {
  /** Stands where the worker cut something out; nothing by default. */
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

import { SandboxLostError, UsageError } from "../errors/sluice-error.ts";
import type { EvidenceItem } from "../evidence/evidence-store.ts";
import { inputOkFrame } from "../protocol/worker-frames.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import { waitForDeath } from "../sandbox/run-in-worker.ts";

/** How the bytes of an input become a Python value, inside the sandbox and only when it is used. */
export type InputFormat = "json" | "jsonl" | "csv" | "tsv" | "parquet" | "xlsx" | "text" | "bytes";

export interface CellInput {
  readonly format: InputFormat;
  readonly bytes: Uint8Array;
  /** How many bytes, where reading them is put off until they are shipped. */
  readonly size?: number;
  /** Another text whenever the bytes may be others; throws when they are gone. Without it they never change. */
  readonly version?: () => string;
}

/** An input of a session, and the version of it that a cell was last given; null while no cell had it. */
export interface BoundInput {
  readonly input: CellInput;
  given: string | null;
}

/** Evidence as a session takes it. The bytes are read when they are shipped, and those of a file are not held after. */
export function toCellInput(item: EvidenceItem): CellInput {
  const { file, format } = item;
  let held: WeakRef<Uint8Array> | null = null;
  return {
    format,
    ...(file && { version: () => file.version() }),
    get size() {
      return item.bytes;
    },
    get bytes() {
      const bytes = held?.deref() ?? item.read();
      held = new WeakRef(bytes);
      return bytes;
    },
  };
}

/**
 * The inputs that code can see: those that a name stands for, those in its text, and all of them when it goes through `inputs`. Files may be many and
 * large, and short words: of them only those that are named, or a word of the code.
 */
export function inputsSeenBy(
  code: string,
  names: Readonly<Record<string, string>>,
  inputs: ReadonlyMap<string, BoundInput>,
): [string, BoundInput][] {
  const named = new Set(Object.values(names));
  const all = /\binputs\b/.test(code);
  const words = new Set(code.match(/\w+/g));
  return [...inputs].filter(([alias, { input }]) => {
    if (named.has(alias)) return true;
    return input.version === undefined ? all || code.includes(alias) : words.has(alias);
  });
}

export function sizeOf(input: CellInput): number {
  return input.size ?? input.bytes.length;
}

/** Parsed JSON needs about this many times its size. */
const JSON_GROWTH = 5;

export function refuseTooLarge(alias: string, input: CellInput, others: number, limits: SandboxLimits): void {
  const size = sizeOf(input);
  const total = others + size;
  if (total > limits.inputBytes) {
    throw new UsageError({
      code: "INPUTS_TOO_LARGE",
      message: `Inputs have ${total} bytes with ${alias}, ${limits.inputBytes} are allowed.`,
      hint: "Bind less, or raise the limit inputBytes.",
      details: { alias, allowed: limits.inputBytes, seen: total },
    });
  }
  if (input.format === "json" && size * JSON_GROWTH > limits.memoryBytes) {
    throw new UsageError({
      code: "INPUT_TOO_LARGE",
      message: `${alias} has ${size} bytes of JSON, which needs about ${size * JSON_GROWTH} bytes of memory in Python; the limit is ${limits.memoryBytes}.`,
      hint: "Raise the memory limit, or give the data as Parquet or CSV.",
      details: { alias, allowed: limits.memoryBytes, estimate: size * JSON_GROWTH },
    });
  }
}

/** Sends one input. A sandbox that does not take it is of no use after: the caller discards it. */
export async function sendInput(lease: Lease, alias: string, { format, bytes }: CellInput): Promise<void> {
  try {
    await lease.channel.send({ type: "input", alias, format }, bytes);
    if (inputOkFrame.safeParse((await lease.channel.receive())?.header).data?.alias === alias) return;
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
  }
  const death = await waitForDeath(lease);
  if (death === null || death.cause === "out_of_memory") {
    throw new UsageError({
      code: "INPUT_NOT_TAKEN",
      message: `The sandbox did not take the input ${alias} (${bytes.length} bytes).`,
      hint: "It may not fit the memory limit; raise it or bind less.",
    });
  }
  throw new SandboxLostError({
    code: "SANDBOX_LOST",
    message: `The sandbox is gone: it ended while the input ${alias} was given to it. Nothing of this cell was run.`,
  });
}

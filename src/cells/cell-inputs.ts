import { SandboxLostError, UsageError } from "../errors/sluice-error.ts";
import type { EvidenceFormat, EvidenceItem } from "../evidence/evidence-store.ts";
import type { ReaderOptions } from "../protocol/reader.ts";
import { inputOkFrame } from "../protocol/worker-frames.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import { waitForDeath } from "../sandbox/run-in-worker.ts";
import type { CellSource } from "./committed-cells.ts";

/** How the sandbox turns the bytes of an input into a Python value, on first use. */
export type InputFormat = EvidenceFormat;

export interface CellInput {
  readonly format: InputFormat;
  readonly bytes: Uint8Array;
  /** The size in bytes. Set it when `bytes` is a getter that reads lazily. */
  readonly size?: number;
  /** Returns a text that changes whenever the bytes may have changed; throws when they no longer exist. Without it, the bytes never change. */
  readonly version?: () => string;
  /** How to read a CSV-like input. What is not given is inferred. */
  readonly reader?: ReaderOptions | undefined;
  /** Shows in errors how to give `reader`: text with `{}` in place of the options in URL form. Default: the options as JSON. */
  readonly readerExample?: string | undefined;
}

/** Turns evidence into an input. Reads the bytes when they are sent, and does not keep the bytes of a file in memory afterwards. */
export function toCellInput(item: EvidenceItem): CellInput {
  const { file, format, reader, readerExample } = item;
  let cached: WeakRef<Uint8Array> | null = null;
  return {
    format,
    reader,
    readerExample,
    ...(file && { version: () => file.version() }),
    get size() {
      return item.bytes;
    },
    get bytes() {
      const bytes = cached?.deref() ?? item.read();
      cached = new WeakRef(bytes);
      return bytes;
    },
  };
}

interface BoundInput {
  readonly input: CellInput;
  /** The version that a sandbox last received; null if none has. */
  sentVersion: string | null;
}

/** An input that a cell can see, at its current version. */
export interface VisibleInput {
  readonly alias: string;
  readonly bound: BoundInput;
  readonly version: string;
}

/** An input whose content changed after an earlier cell used it. */
export interface ChangedInput {
  readonly alias: string;
  readonly bytes: number;
}

/** The inputs of a cell session by alias. Each is sent to a sandbox once, before the first cell that can see it, and again if its content changes. */
export class SessionInputs {
  readonly #limits: SandboxLimits;
  readonly #inputs = new Map<string, BoundInput>();

  constructor(limits: SandboxLimits) {
    this.#limits = limits;
  }

  /** Binds an alias. Returns whether it was bound before. Throws INPUTS_TOO_LARGE or INPUT_TOO_LARGE. */
  bind(alias: string, input: CellInput): boolean {
    const otherBytes = [...this.#inputs].reduce((sum, [name, other]) => (name === alias ? sum : sum + sizeOf(other.input)), 0);
    refuseTooLarge(alias, input, otherBytes, this.#limits);
    const wasBound = this.#inputs.has(alias);
    this.#inputs.set(alias, { input, sentVersion: null });
    return wasBound;
  }

  /** Adds the inputs that come with a cell. Their content counts as unchanged as long as their version is the same. */
  add(inputs: ReadonlyMap<string, CellInput>): void {
    for (const [alias, input] of inputs) this.#inputs.set(alias, { input, sentVersion: this.#inputs.get(alias)?.sentVersion ?? null });
  }

  /** Lists the inputs that a cell can see. Throws when the file of one no longer exists. */
  visibleTo(cell: CellSource): VisibleInput[] {
    return this.#filterVisible(cell).map(([alias, bound]) => ({ alias, bound, version: bound.input.version?.() ?? "" }));
  }

  /** Whether an input that these cells can see differs from what they received, or no longer exists. */
  haveChanged(cells: readonly CellSource[]): boolean {
    return cells
      .flatMap((cell) => this.#filterVisible(cell))
      .some(([, { input, sentVersion }]) => sentVersion !== null && versionOrNull(input) !== sentVersion);
  }

  /** Throws INPUTS_TOO_LARGE or INPUT_TOO_LARGE if these inputs do not fit beside those that the sandbox already has. */
  refuseTooLarge(visible: readonly VisibleInput[], sentAliases: ReadonlySet<string>): void {
    const others = sentAliases.difference(new Set(visible.map(({ alias }) => alias)));
    let totalBytes = [...others].reduce((sum, alias) => sum + sizeOf(this.#inputs.get(alias)!.input), 0);
    for (const { alias, bound } of visible) {
      refuseTooLarge(alias, bound.input, totalBytes, this.#limits);
      totalBytes += sizeOf(bound.input);
    }
  }

  /**
   * Sends the inputs that the sandbox does not have in their current version and adds them to `sentAliases`. After a failure, the sandbox may hold half
   * an input: discard it.
   */
  async send(visible: readonly VisibleInput[], { lease, sentAliases }: { lease: Lease; sentAliases: Set<string> }): Promise<void> {
    for (const { alias, bound, version } of visible.filter((input) => needsSending(input, sentAliases))) {
      await sendInput(lease, alias, bound.input);
      sentAliases.add(alias);
      bound.sentVersion = version;
    }
  }

  /**
   * The inputs that code can see: those given a local name, those whose alias appears in the code, and all of them if the code mentions `inputs`.
   * Files can be many and large, and their aliases short words, so a file counts only if it is named or its alias is a whole word of the code.
   */
  #filterVisible({ code, names }: CellSource): [string, BoundInput][] {
    const named = new Set(Object.values(names));
    const usesAll = /\binputs\b/.test(code);
    const words = new Set(code.match(/\w+/g));
    return [...this.#inputs].filter(([alias, { input }]) => {
      if (named.has(alias)) return true;
      const isFile = input.version !== undefined;
      return isFile ? words.has(alias) : usesAll || code.includes(alias);
    });
  }
}

export function sizeOf(input: CellInput): number {
  return input.size ?? input.bytes.length;
}

export function hasChanged({ bound, version }: VisibleInput): boolean {
  return bound.sentVersion !== null && bound.sentVersion !== version;
}

function needsSending({ alias, bound, version }: VisibleInput, sentAliases: ReadonlySet<string>): boolean {
  return !sentAliases.has(alias) || bound.sentVersion !== version;
}

function versionOrNull({ version }: CellInput): string | null {
  try {
    return version?.() ?? "";
  } catch {
    return null; // the file no longer exists
  }
}

/** Parsed JSON needs about this many times its size. */
const JSON_GROWTH = 5;

function refuseTooLarge(alias: string, input: CellInput, otherBytes: number, limits: SandboxLimits): void {
  const size = sizeOf(input);
  const total = otherBytes + size;
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
      hint: "Raise the memory limit, or provide the data as Parquet or CSV.",
      details: { alias, allowed: limits.memoryBytes, estimate: size * JSON_GROWTH },
    });
  }
}

async function sendInput(lease: Lease, alias: string, { format, bytes, reader, readerExample }: CellInput): Promise<void> {
  try {
    await lease.channel.send({ type: "input", alias, format, reader, readerExample }, bytes);
    if (inputOkFrame.safeParse((await lease.channel.receive())?.header).data?.alias === alias) return;
  } catch (error) {
    if (!(error instanceof SandboxLostError)) throw error;
  }
  const death = await waitForDeath(lease);
  if (death === null || death.cause === "out_of_memory") {
    throw new UsageError({
      code: "INPUT_NOT_TAKEN",
      message: `The sandbox did not accept the input ${alias} (${bytes.length} bytes).`,
      hint: "It may not fit into the memory limit; raise the limit or bind less.",
    });
  }
  throw new SandboxLostError({
    code: "SANDBOX_LOST",
    message: `The sandbox ended while it received the input ${alias}. The cell was not run.`,
  });
}

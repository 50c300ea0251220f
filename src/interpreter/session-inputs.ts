import { SandboxLostError, UsageError } from "../errors/sluice-error.ts";
import { inputOkFrame } from "../protocol/worker-frames.ts";
import type { Lease, SandboxLimits } from "../sandbox/contract.ts";
import { deathOf } from "./death-of.ts";

/** How the bytes of an input become a Python value, inside the sandbox and only when it is used. */
export type InputFormat = "json" | "jsonl" | "csv" | "tsv" | "parquet" | "xlsx" | "text" | "bytes";

export interface SessionInput {
  readonly format: InputFormat;
  readonly bytes: Uint8Array;
  /** How many bytes, where reading them is put off until they are shipped. */
  readonly size?: number;
  /** Another text whenever the bytes may be others; throws when they are gone. Without it they never change. */
  readonly version?: () => string;
}

/** What is bound in a session. Each goes to a sandbox once, before the first cell that can see it. */
export interface SessionInputs {
  /** Whether it took the place of another. */
  bind(alias: string, input: SessionInput): boolean;
  /** Ships to a sandbox what the code can see and `shipped` does not name yet. A sandbox that does not take an input is of no use after: whoever holds it gives it up. */
  ship(to: { readonly lease: Lease; readonly shipped: Set<string> }, code: string, names: Readonly<Record<string, string>>): Promise<void>;
  /** Whether another sandbox would get what the ones before it got. */
  areAsShipped(): boolean;
}

/** Parsed JSON needs about this many times its size. */
const JSON_GROWTH = 5;

export function createSessionInputs(limits: SandboxLimits): SessionInputs {
  const inputs = new Map<string, SessionInput>();
  /** Of what was shipped and can change. */
  const versions = new Map<string, string>();
  return {
    bind(alias, input) {
      const others = [...inputs].filter(([name]) => name !== alias);
      refuseTooLarge(
        alias,
        input,
        limits,
        others.reduce((sum, [, other]) => sum + sizeOf(other), 0),
      );
      const isAnother = inputs.has(alias);
      inputs.set(alias, input);
      versions.delete(alias);
      return isAnother;
    },
    async ship({ lease, shipped }, code, names) {
      for (const [alias, input] of inputs) {
        if (shipped.has(alias) || !mayUse(code, alias, names)) continue;
        if (!(await isTaken(lease, alias, input))) {
          const death = await deathOf(lease);
          throw death === null || death.cause === "out_of_memory" ? notTaken(alias, input) : lostWhileShipping(alias);
        }
        shipped.add(alias);
        if (input.version !== undefined && !versions.has(alias)) versions.set(alias, input.version());
      }
    },
    areAsShipped: () => [...versions].every(([alias, version]) => versionOf(inputs.get(alias)!) === version),
  };
}

/** An alias is shipped when the code can see it: by its name, a local name for it, or anything that goes through `inputs`. */
function mayUse(code: string, alias: string, names: Readonly<Record<string, string>>): boolean {
  return code.includes(alias) || /\binputs\b/.test(code) || Object.values(names).includes(alias);
}

function versionOf({ version }: SessionInput): string | null {
  try {
    return version?.() ?? null;
  } catch {
    return null; // it is gone
  }
}

function sizeOf(input: SessionInput): number {
  return input.size ?? input.bytes.length;
}

function refuseTooLarge(alias: string, input: SessionInput, limits: SandboxLimits, others: number): void {
  const { format } = input;
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
  if (format === "json" && size * JSON_GROWTH > limits.memoryBytes) {
    throw new UsageError({
      code: "INPUT_TOO_LARGE",
      message: `${alias} has ${size} bytes of JSON, which needs about ${size * JSON_GROWTH} bytes of memory in Python; the limit is ${limits.memoryBytes}.`,
      hint: "Raise the memory limit, or give the data as Parquet or CSV.",
      details: { alias, allowed: limits.memoryBytes, estimate: size * JSON_GROWTH },
    });
  }
}

async function isTaken({ channel }: Lease, alias: string, { format, bytes }: SessionInput): Promise<boolean> {
  try {
    await channel.send({ type: "input", alias, format }, bytes);
    return inputOkFrame.safeParse((await channel.receive())?.header).data?.alias === alias;
  } catch (error) {
    if (error instanceof SandboxLostError) return false;
    throw error;
  }
}

function notTaken(alias: string, { bytes }: SessionInput): UsageError {
  return new UsageError({
    code: "INPUT_NOT_TAKEN",
    message: `The sandbox did not take the input ${alias} (${bytes.length} bytes).`,
    hint: "It may not fit the memory limit; raise it or bind less.",
  });
}

function lostWhileShipping(alias: string): SandboxLostError {
  return new SandboxLostError({
    code: "SANDBOX_LOST",
    message: `The sandbox is gone: it ended while the input ${alias} was given to it. Nothing of this cell was run.`,
    hint: "Call again: a new sandbox is opened, and the answer says what became of the variables.",
  });
}

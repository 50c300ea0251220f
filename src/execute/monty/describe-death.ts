import { constants } from "node:os";
import type { EngineEnd } from "../contract.ts";

export interface ChildDeath {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  /** Set when we ended it, for what it sent. */
  readonly violation: string | null;
}

/** Rust, the C++ library and V8 each have their own last words when there is no memory. */
const outOfMemory = /memory allocation of \d+ bytes failed|out of memory|std::bad_alloc|Cannot allocate memory|allocation failed/i;

/** Why a child died that nobody had told to. Only the kernel and we can be believed; stderr is the runtime's, which a script cannot write to. */
export function describeDeath({ code, signal, stderr, violation }: ChildDeath, memoryBytes: number): EngineEnd {
  if (violation !== null) return { kind: "crashed", detail: `The interpreter's process was ended because it ${violation}.` };
  if (outOfMemory.test(stderr)) return { kind: "limit", limit: "memoryBytes", allowed: memoryBytes };
  const name = signal ?? signalOf(code);
  return { kind: "crashed", detail: `The interpreter's process died: ${name ?? `exit status ${code}`}.` };
}

/** bwrap and shells tell of a signal as 128 and its number. */
function signalOf(code: number | null): string | null {
  if (code === null || code <= 128) return null;
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0] ?? null;
}

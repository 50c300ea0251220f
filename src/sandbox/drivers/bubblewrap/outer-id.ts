import { createHash } from "node:crypto";
import { NoSandboxError } from "../../../errors/sluice-error.ts";
import { currentProcess } from "../../../processes.ts";

/** A uid and gid of the host that belongs to one live sandbox. The kernel counts some resources per user, so sandboxes with one id could exhaust them for each other. */
export interface OuterId {
  readonly id: number;
  release(): void;
}

/** No tool assigns ids from 2^31 on: distributions, directories and containers stay below. No file has them either. */
const FIRST_ID = 2 ** 31;
/** One block per pid: a pid has at most 22 bits. */
const BLOCKS = 2 ** 22;
const BLOCK_IDS = 512;
/** The last id of the last block means "no id" to the kernel, so no block uses its last id. */
const maxOuterIds = BLOCK_IDS - 1;

/** The places in the block of this process that no live sandbox has. Those released last come last: the kernel may still be cleaning up after their sandbox. */
const free = Array.from({ length: maxOuterIds }, (_, place) => place);

/** Reserves an id. Every process of a pid namespace has a block of its own, so two hosts on one machine never share an id. */
export function reserveOuterId(): OuterId {
  const place = free.shift();
  if (place === undefined)
    throw new NoSandboxError({
      code: "SANDBOX_NOT_OPENED",
      message: `A bubblewrap sandbox could not be opened. All ${maxOuterIds} user ids that one process has for its sandboxes are in use.`,
      hint: "Close other sandboxes first, or set sandbox.maxSandboxes to a lower number.",
    });
  return { id: firstIdOfThisProcess() + place, release: () => void free.push(place) };
}

/** Processes of other pid namespaces (containers) can have the same pid, so each namespace starts at another block. */
function firstIdOfThisProcess(): number {
  const { pid, namespace } = currentProcess();
  const start = createHash("sha256").update(namespace).digest().readUInt32LE();
  return FIRST_ID + ((pid + start) % BLOCKS) * BLOCK_IDS;
}

import { readdirSync, readFileSync } from "node:fs";

const O_CLOEXEC = 0o2000000;
/** Those that every child gets on purpose: standard streams, its channel, and two for bwrap. */
const LAST_OWN = 5;

/**
 * Descriptors that any program we start would get from us. Node opens its own so that they are not among them; but what started us may have left some
 * open, and they go on from hand to hand.
 */
export function listInheritedDescriptors(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number).filter(isInherited);
  } catch {
    return []; // no /proc
  }
}

function isInherited(descriptor: number): boolean {
  if (descriptor <= LAST_OWN) return false;
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1] ?? "0";
    return (parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // closed meanwhile: the one of this very look
  }
}

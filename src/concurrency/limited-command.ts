import { readdirSync, readFileSync } from "node:fs";

export const limitingShell = "/bin/sh";

/** `ulimit -d` takes KiB. No core files: crashes are expected, and a core file would contain the data that is worked on. */
const withLimits = ["-c", 'ulimit -c 0 && ulimit -d "$1" && shift && exec "$@"', "sh"];

/**
 * Arguments of `limitingShell` that run a command with limited private memory: heap, buffers and stacks, of this process and of each of its children. The
 * kernel refuses an allocation beyond the limit, and the process dies of that.
 */
export function toLimitedArguments(dataBytes: number, command: readonly string[]): string[] {
  return [...withLimits, String(Math.ceil(dataBytes / 1024)), ...command];
}

const O_CLOEXEC = 0o2000000;

/**
 * Descriptors above `lastPassed` that every program we start would inherit, for the program to close. Node opens its own with O_CLOEXEC, but the program
 * that started us may have left others open. A POSIX shell cannot close descriptors above 9.
 */
export function listInheritedDescriptors(lastPassed: number): number[] {
  try {
    return readdirSync("/proc/self/fd")
      .map(Number)
      .filter((descriptor) => descriptor > lastPassed && isInherited(descriptor));
  } catch {
    return []; // no /proc
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1"))?.[1] ?? "0";
    return (parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // closed since: the descriptor of the directory listing itself
  }
}

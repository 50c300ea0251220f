import type { CellError } from "../protocol/outcome.ts";
import type { SandboxLimits } from "../sandbox/contract.ts";

/**
 * The limit of the sandbox that an exception of the cell is about: a full scratch, no descriptor left, no process or thread more. The kernel says no at the
 * bound itself, so what was seen is what is allowed.
 */
export function limitBehind({ type, message, traceback = "" }: CellError, limits: SandboxLimits): CellError["limit"] {
  const name = nameOf(type, message, traceback);
  return name === null ? undefined : { name, allowed: limits[name], seen: limits[name] };
}

function nameOf(type: string, message: string, traceback: string): "scratchBytes" | "openFiles" | "processes" | null {
  if (type === "OSError" && /^\[Errno (27|28)\] /.test(message)) return "scratchBytes"; // EFBIG, ENOSPC
  if (type === "OSError" && message.startsWith("[Errno 24] ")) return "openFiles"; // EMFILE
  if (type === "RuntimeError" && message === "can't start new thread") return "processes";
  // EAGAIN is also what a socket or pipe says that would block.
  if (type === "BlockingIOError" && message.startsWith("[Errno 11] ") && traceback.includes("fork")) return "processes";
  return null;
}

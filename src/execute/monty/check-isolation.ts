import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { NoSandboxError } from "../../errors/sluice-error.ts";

const run = promisify(execFile);

/** Whether bwrap can make the namespaces that a child gets. Throws NoSandboxError, which says why not. */
export async function checkIsolation(bwrapPath: string): Promise<void> {
  if (process.platform !== "linux") throw noNamespaces(`namespaces are of Linux, this is ${process.platform}`);
  const args = [
    "--unshare-user",
    "--disable-userns",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--uid",
    "65534",
    "--ro-bind",
    "/",
    "/",
    "--",
    "/bin/true",
  ];
  try {
    await run(bwrapPath, args, { timeout: 10_000, env: {}, cwd: "/" });
  } catch (error) {
    const { code, stderr, message } = error as { code?: unknown; stderr?: string; message: string };
    throw noNamespaces(code === "ENOENT" ? `the program ${bwrapPath} was not found` : stderr?.trim() || message, error);
  }
}

function noNamespaces(why: string, cause?: unknown): NoSandboxError {
  return new NoSandboxError({
    code: "MONTY_ISOLATION_UNAVAILABLE",
    message: `The process for Monty cannot get namespaces of its own: ${why}.`,
    hint: 'Install bubblewrap (apt-get install bubblewrap) and allow user namespaces, or set isolation: "process-only" and accept that nothing but Monty itself then stands between a script and this user.',
    cause,
  });
}

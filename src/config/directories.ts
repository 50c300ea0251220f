import path from "node:path";
import { homedir } from "node:os";

/** Where everything that is built goes: SLUICE_CACHE, else the user's cache directory. Never inside a clone. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const chosen = environment["SLUICE_CACHE"];
  if (chosen) return path.resolve(chosen);
  const shared = environment["XDG_CACHE_HOME"];
  // The base directory specification says that a relative path is to be ignored.
  return path.join(shared && path.isAbsolute(shared) ? shared : path.join(homedir(), ".cache"), "sluice");
}

/** Where programs of the machine are looked for. */
export function searchPath(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  return environment["PATH"] || "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

import { homedir } from "node:os";
import path from "node:path";

/** Where everything that is built goes: SLUICE_CACHE, else the user's cache directory. Never inside a clone. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>> = process.env): string {
  const chosen = environment["SLUICE_CACHE"];
  if (chosen) return path.resolve(chosen);
  const shared = environment["XDG_CACHE_HOME"];
  // The base directory specification says that a relative path is to be ignored.
  return path.join(shared && path.isAbsolute(shared) ? shared : path.join(homedir(), ".cache"), "sluice");
}

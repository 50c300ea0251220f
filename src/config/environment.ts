import { homedir } from "node:os";
import path from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment variables of this process. Only src/config reads them; every other module receives them as an argument. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Directory for everything that Sluice builds: SLUICE_CACHE, or `sluice` in the user's cache directory. */
export function cacheDirectory(environment: Environment = process.env): string {
  const chosen = environment["SLUICE_CACHE"];
  if (chosen) return path.resolve(chosen);
  const userCache = environment["XDG_CACHE_HOME"];
  // The XDG base directory specification says to ignore relative paths.
  return path.join(userCache && path.isAbsolute(userCache) ? userCache : path.join(homedir(), ".cache"), "sluice");
}

/** Directory for artifacts and datasets, and the variable that chose it: SLUICE_DATA, or `sluice` in the user's data directory. Separate from the cache, which users may delete. */
export function dataDirectory(environment: Environment): { readonly directory: string; readonly variable: string | null } {
  const chosen = environment["SLUICE_DATA"];
  if (chosen) return { directory: path.resolve(chosen), variable: "SLUICE_DATA" };
  const userData = environment["XDG_DATA_HOME"];
  if (userData && path.isAbsolute(userData)) return { directory: path.join(userData, "sluice"), variable: "XDG_DATA_HOME" };
  return { directory: path.join(homedir(), ".local", "share", "sluice"), variable: null };
}

/** The PATH on which host programs are searched, with a default for an empty one. */
export function searchPath(environment: Environment = process.env): string {
  return environment["PATH"] || "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

import { homedir } from "node:os";
import path from "node:path";
import type { Environment } from "./loaded-configuration.ts";

/** Where what must last goes (artifacts, datasets): SLUICE_DATA, else the user's data directory. Never the cache, which may be emptied. */
export function dataDirectory(environment: Environment): { readonly directory: string; readonly variable: string | null } {
  const chosen = environment["SLUICE_DATA"];
  if (chosen) return { directory: path.resolve(chosen), variable: "SLUICE_DATA" };
  const shared = environment["XDG_DATA_HOME"];
  if (shared && path.isAbsolute(shared)) return { directory: path.join(shared, "sluice"), variable: "XDG_DATA_HOME" };
  return { directory: path.join(homedir(), ".local", "share", "sluice"), variable: null };
}

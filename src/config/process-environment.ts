import type { Environment } from "./loaded-configuration.ts";

/** The variables of this process: the one place where they are read, for whoever hands them on. */
export function processEnvironment(): Environment {
  return process.env;
}

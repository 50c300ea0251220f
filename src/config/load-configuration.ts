import type { Environment, LoadedConfiguration } from "./contract.ts";

export interface LoadOptions {
  /** The file to read; when it is left out, `sluice.config.json` is looked for from the working directory upward. */
  readonly file?: string | undefined;
  readonly workingDirectory: string;
  readonly environment: Environment;
}

/** Reads, expands and checks. Throws UsageError with everything that is wrong with the file at once. */
export async function loadConfiguration(options: LoadOptions): Promise<LoadedConfiguration> {
  throw new Error(`not yet: ${options.workingDirectory}`);
}

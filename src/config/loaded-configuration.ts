import type { Configuration } from "./configuration-schema.ts";

export type { AuthToken, Configuration, ServerConfiguration } from "./configuration-schema.ts";

/** Where one value came from. */
export type Origin =
  | { readonly from: "default" }
  | { readonly from: "file" }
  /** `written` is the text of the file, where the variables are referred to in one. */
  | { readonly from: "environment"; readonly variables: readonly string[]; readonly written?: string | undefined };

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The file that was read; null when there is none. */
  readonly path: string | null;
  /** By path, as `limits.sandbox.cellTimeoutMs` or `mcpServers.market.args[0]`; one entry for every single value of the configuration. */
  readonly origins: Readonly<Record<string, Origin>>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

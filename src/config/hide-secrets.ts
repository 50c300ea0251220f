import { toPathText } from "../errors/argument-path.ts";
import { isCredentialName, withoutSecrets } from "../tools/find-credentials.ts";
import type { LoadedConfiguration } from "./loaded-configuration.ts";
import { isSecretPath } from "./is-secret-path.ts";

const HIDDEN = "(hidden)";

/**
 * The configuration as it may be shown: headers, variables, keys, hashes and what rides for an identity are hidden; a text with references is shown as it
 * is in the file; what looks like a credential in an address or an argument is taken out.
 */
export function hideSecrets({ configuration, origins }: LoadedConfiguration): unknown {
  function hide(value: unknown, path: readonly PropertyKey[], before: unknown): unknown {
    if (typeof value === "string") return hideText(value, path, before);
    if (Array.isArray(value)) return value.map((item: unknown, index) => hide(item, [...path, index], value[index - 1]));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hide(item, [...path, key], undefined)]));
  }

  function hideText(text: string, path: readonly PropertyKey[], before: unknown): string {
    if (isSecretPath(path)) return HIDDEN;
    const origin = origins[toPathText(path)];
    if (origin?.from === "environment" && origin.written !== undefined) return origin.written;
    const last = path.at(-1);
    if (last === "url" || last === "baseUrl") return hideInUrl(text);
    return path[0] === "mcpServers" && path[2] === "args" ? hideInArgument(text, before) : text;
  }

  return hide(configuration, [], undefined);
}

/** A password, and every value of the query. */
function hideInUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null) return HIDDEN;
  if (url.password === "" && url.username === "" && url.search === "") return withoutSecrets(text);
  if (url.username !== "") url.username = "hidden";
  if (url.password !== "") url.password = "hidden";
  for (const key of [...url.searchParams.keys()]) url.searchParams.set(key, "hidden");
  return withoutSecrets(url.href);
}

/** `--api-key=x`, and `x` after `--api-key`. */
function hideInArgument(text: string, before: unknown): string {
  const [, flag] = /^(-{0,2}[\w.-]+)=/.exec(text) ?? [];
  if (flag !== undefined && isCredentialName(flag)) return `${flag}=${HIDDEN}`;
  if (typeof before === "string" && /^-{1,2}[\w.-]+$/.test(before) && isCredentialName(before) && !text.startsWith("-")) return HIDDEN;
  return withoutSecrets(text);
}

import { toPathText } from "../errors/argument-path.ts";
import { isCredentialName, withoutSecrets } from "../tools/find-credentials.ts";
import type { LoadedConfiguration } from "./load-configuration.ts";

const HIDDEN = "(hidden)";

/**
 * Returns a copy of the configuration that is safe to print. Values at secret paths become `(hidden)`, strings with references are shown unexpanded, and
 * anything that looks like a credential is removed from URLs and command arguments.
 */
export function hideSecrets({ configuration, origins }: LoadedConfiguration): unknown {
  function hide(value: unknown, path: readonly PropertyKey[], previous: unknown): unknown {
    if (typeof value === "string") return hideText(value, path, previous);
    if (Array.isArray(value)) return value.map((item: unknown, index) => hide(item, [...path, index], value[index - 1]));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hide(item, [...path, key], undefined)]));
  }

  function hideText(text: string, path: readonly PropertyKey[], previous: unknown): string {
    if (isSecretPath(path)) return HIDDEN;
    const origin = origins[toPathText(path)];
    if (origin?.from === "environment" && origin.written !== undefined) return origin.written;
    const last = path.at(-1);
    if (last === "url" || last === "baseUrl") return hideInUrl(text);
    return path[0] === "mcpServers" && path[2] === "args" ? hideInArgument(text, previous) : text;
  }

  return hide(configuration, [], undefined);
}

/** Whether the value at a path is always secret: headers, environment variables, API keys, token hashes and the values sent for an identity. */
export function isSecretPath([top, second, third, fourth, fifth]: readonly PropertyKey[]): boolean {
  if (top === "mcpServers") return (third === "headers" || third === "env") && fourth !== undefined;
  if (top === "models") return third === "apiKey" || (third === "headers" && fourth !== undefined);
  if (top === "auth") return second === "tokens" && fourth === "sha256";
  return top === "session" && third === "choices" && fifth === "value";
}

/** Hides the user name, the password and every query value. */
function hideInUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null) return HIDDEN;
  if (url.password === "" && url.username === "" && url.search === "") return withoutSecrets(text);
  if (url.username !== "") url.username = "hidden";
  if (url.password !== "") url.password = "hidden";
  for (const key of [...url.searchParams.keys()]) url.searchParams.set(key, "hidden");
  return withoutSecrets(url.href);
}

/** Hides the value of `--api-key=x`, and `x` after `--api-key`. */
function hideInArgument(text: string, previous: unknown): string {
  const [, flag] = /^(-{0,2}[\w.-]+)=/.exec(text) ?? [];
  if (flag !== undefined && isCredentialName(flag)) return `${flag}=${HIDDEN}`;
  if (typeof previous === "string" && /^-{1,2}[\w.-]+$/.test(previous) && isCredentialName(previous) && !text.startsWith("-"))
    return HIDDEN;
  return withoutSecrets(text);
}

import type { ToolFailure } from "../to-failure-envelope.ts";
import { judgeName } from "../credentials/judge-name.ts";

/** Shorter values would be found where they are not meant. */
const SHORTEST = 8;

/** A backend's error can repeat the headers that it was sent; those that are credentials are taken out of it, whatever they look like. */
export function hideHeaders(failure: ToolFailure, headers: Readonly<Record<string, string>> = {}): ToolFailure {
  const secrets = Object.entries(headers)
    .filter(([name]) => judgeName(name) === "always")
    .flatMap(([, value]) => [value, value.replace(/^\s*\w+\s+/, "")])
    .filter((value) => value.length >= SHORTEST);
  if (secrets.length === 0) return failure;
  const text = JSON.stringify(failure);
  const clean = secrets.reduce((hidden, value) => hidden.replaceAll(JSON.stringify(value).slice(1, -1), "[removed]"), text);
  return clean === text ? failure : (JSON.parse(clean) as ToolFailure);
}

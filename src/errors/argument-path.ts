import { ellipsize } from "../text/clip-text.ts";

/** A value of the caller's in a sentence: quoted, and short whatever it is. */
export function quote(text: string): string {
  return JSON.stringify(ellipsize(text, 80));
}

/** One step down from `path` in a call's arguments: `a.b[0]`, `a["x-y"]`. */
export function below(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** `limits.sandbox.openFiles`, `mcpServers["my server"].args[0]`. */
export function toPathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => below(text, typeof key === "number" ? key : String(key)), "");
}

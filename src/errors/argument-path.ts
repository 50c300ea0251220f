import { ellipsize } from "../text/clip-text.ts";

/** Quotes a value from the caller for use in a sentence, shortened to 80 characters. */
export function quote(text: string): string {
  return JSON.stringify(ellipsize(text, 80));
}

/** Appends a key or an index to a path: `a.b[0]`, `a["x-y"]`. */
export function appendToPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** Writes a path as text: `limits.sandbox.openFiles`, `mcpServers["my server"].args[0]`. */
export function toPathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => appendToPath(text, typeof key === "number" ? key : String(key)), "");
}

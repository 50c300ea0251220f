/** A value of the caller's in a sentence: quoted, and short whatever it is. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text);
}

/** One step down from `path` in a call's arguments: `a.b[0]`, `a["x-y"]`. */
export function below(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${quote(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

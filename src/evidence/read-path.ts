/** A value inside nested data, or where the way to it ends. */
export type ReadPath = { ok: true; value: unknown } | { ok: false; at: string; keys: string[] };

/** By a path like `data.rows` or `items[0].prices`, or by its steps where keys may have dots in them. */
export function readPath(value: unknown, path: string | readonly string[]): ReadPath {
  let current = value;
  let at = "";
  for (const step of typeof path === "string" ? (path.match(/[^.[\]]+/g) ?? []) : path) {
    const next = Array.isArray(current)
      ? current[Number(step)]
      : isObject(current) && Object.hasOwn(current, step)
        ? current[step]
        : undefined;
    if (next === undefined) return { ok: false, at, keys: isObject(current) ? Object.keys(current).slice(0, 30) : [] };
    current = next;
    at = at === "" ? step : `${at}.${step}`;
  }
  return { ok: true, value: current };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

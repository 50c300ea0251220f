/** A value inside nested data, or where the way to it ends. */
export type ReadPath = { ok: true; value: unknown } | { ok: false; at: string; keys: string[] };

/** By a path like `data.rows`, `items[0].prices`, `$.data` or `["by.day"]['rows']`, or by its steps. */
export function readPath(value: unknown, path: string | readonly string[]): ReadPath {
  let current = value;
  let at = "";
  for (const step of typeof path === "string" ? toSteps(path) : path) {
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

/** Keys with dots and brackets in them stand in quotes, as they do in Python. */
function toSteps(path: string): string[] {
  const steps = [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\]|([^.[\]]+)/g)].map(
    ([, double, single, plain]) => plain ?? (double ?? single!).replaceAll(/\\(.)/g, "$1"),
  );
  return path.startsWith("$") && steps[0] === "$" ? steps.slice(1) : steps;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

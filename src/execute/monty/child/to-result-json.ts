/** What reads results, ours and others, is recursive: JSON that is deeper crashes or confuses it. */
const MAX_DEPTH = 200;

/** The JSON text of what a script returned. Null when it would be longer than `limit`. */
export function toResultJson(root: unknown, limit: number, warnings: Set<string>): string | null {
  let room = limit;
  let depth = 0;
  const tooLong = Symbol("too long");

  function take(text: string): string {
    room -= text.length;
    if (room < 0) throw tooLong;
    return text;
  }

  function convert(value: unknown): string {
    if (value === null || value === undefined) return take("null");
    if (typeof value === "string") return take(JSON.stringify(value));
    if (typeof value === "object") return convertObject(value);
    if (typeof value === "bigint" || typeof value === "boolean") return take(value.toString()); // integers past 2^53 come as bigint, and stay exact
    if (typeof value !== "number") throw new TypeError(`a value of type ${typeof value}`);
    if (Number.isFinite(value)) return take(Object.is(value, -0) ? "-0.0" : String(value));
    warnings.add("nan and inf have no JSON form; they are null in the result.");
    return take("null");
  }

  function convertObject(value: object): string {
    if (value instanceof Uint8Array) return bytes(value);
    const isList = Array.isArray(value) || value instanceof Set;
    if (!isList && !(value instanceof Map)) return take(JSON.stringify(tagged(value as Record<string, unknown>)));
    depth += 1;
    if (depth > MAX_DEPTH) throw new RangeError("too deep");
    const text = isList ? list(value) : dict(value);
    depth -= 1;
    return text;
  }

  function list(items: Iterable<unknown>): string {
    take("[]");
    let text = "";
    for (const item of items) text += (text === "" ? "" : take(",")) + convert(item);
    return `[${text}]`;
  }

  function dict(map: Map<unknown, unknown>): string {
    take("{}");
    const entries = new Map<string, string>();
    for (const [key, item] of map) {
      const name = typeof key === "string" ? key : convert(key).replaceAll(/^"|"$/g, "");
      if (entries.has(name))
        warnings.add(`Two keys of a dict have the same text ${JSON.stringify(name.slice(0, 80))}; the last one is in the result.`);
      entries.set(name, `${take(JSON.stringify(name))}${take(":")}${convert(item)}`);
    }
    return `{${[...entries.values()].join(",")}}`;
  }

  function bytes(value: Uint8Array): string {
    try {
      return take(JSON.stringify(new TextDecoder("utf-8", { fatal: true }).decode(value)));
    } catch (error) {
      if (error === tooLong) throw error;
      warnings.add("bytes that are no UTF-8 text are in the result as base64.");
      return take(JSON.stringify(Buffer.from(value).toString("base64")));
    }
  }

  try {
    const text = convert(root);
    return Buffer.byteLength(text) > limit ? null : text;
  } catch (error) {
    if (error === tooLong) return null;
    throw error;
  }
}

/** What Monty gives as an object with a mark, in the form that results have everywhere: ISO 8601, seconds, or its text. */
function tagged(value: Record<string, unknown>): string | number {
  const two = (name: string): string => String(value[name]).padStart(2, "0");
  const date = (): string => `${String(value["year"]).padStart(4, "0")}-${two("month")}-${two("day")}`;
  switch (value["__monty_type__"]) {
    case "Date":
      return date();
    case "DateTime": {
      const fraction = Number(value["microsecond"]) === 0 ? "" : `.${String(value["microsecond"]).padStart(6, "0")}`;
      const offset = typeof value["offsetSeconds"] === "number" ? toOffset(value["offsetSeconds"]) : "";
      return `${date()}T${two("hour")}:${two("minute")}:${two("second")}${fraction}${offset}`;
    }
    case "TimeDelta":
      return Number(value["days"]) * 86_400 + Number(value["seconds"]) + Number(value["microseconds"]) / 1e6;
    case "TimeZone":
      return toOffset(Number(value["offsetSeconds"]));
    case "Exception":
      return `${String(value["excType"])}: ${String(value["message"])}`;
    case "Type":
      return `<class '${String(value["value"])}'>`;
    default:
      return value["__monty_type__"] === "Ellipsis" ? "Ellipsis" : JSON.stringify(value);
  }
}

function toOffset(seconds: number): string {
  const minutes = Math.floor(Math.abs(seconds) / 60);
  return `${seconds < 0 ? "-" : "+"}${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

/** Readers of results, ours and others, are recursive: deeper JSON crashes or confuses them. */
const MAX_DEPTH = 200;

const tooLong = Symbol("too long");

/** The JSON text of a script's result; null if it is longer than `limitBytes`. Throws a RangeError if it is nested too deeply. */
export function toResultJson(root: unknown, limitBytes: number, warnings: Set<string>): string | null {
  try {
    const text = new ResultWriter(limitBytes, warnings).write(root);
    return Buffer.byteLength(text) > limitBytes ? null : text;
  } catch (error) {
    if (error === tooLong) return null;
    throw error;
  }
}

class ResultWriter {
  readonly #warnings: Set<string>;
  #charactersLeft: number;
  #depth = 0;

  constructor(limit: number, warnings: Set<string>) {
    this.#charactersLeft = limit;
    this.#warnings = warnings;
  }

  write(value: unknown): string {
    if (value === null || value === undefined) return this.#count("null");
    if (typeof value === "string") return this.#count(JSON.stringify(value));
    if (typeof value === "object") return this.#writeObject(value);
    if (typeof value === "bigint" || typeof value === "boolean") return this.#count(value.toString()); // integers past 2^53 are bigint
    if (typeof value !== "number") throw new TypeError(`a value of type ${typeof value}`);
    if (Number.isFinite(value)) return this.#count(Object.is(value, -0) ? "-0.0" : String(value));
    this.#warnings.add("nan and inf have no JSON form; they are null in the result.");
    return this.#count("null");
  }

  /** Stops early, before a text that is far too long has been built. */
  #count(text: string): string {
    this.#charactersLeft -= text.length;
    if (this.#charactersLeft < 0) throw tooLong;
    return text;
  }

  #writeObject(value: object): string {
    if (value instanceof Uint8Array) return this.#writeBytes(value);
    const isList = Array.isArray(value) || value instanceof Set;
    if (!isList && !(value instanceof Map)) return this.#count(JSON.stringify(fromMontyObject(value as Record<string, unknown>)));
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new RangeError("too deep");
    const text = isList ? this.#writeList(value) : this.#writeDict(value);
    this.#depth -= 1;
    return text;
  }

  #writeList(items: Iterable<unknown>): string {
    this.#count("[]");
    let text = "";
    for (const item of items) text += (text === "" ? "" : this.#count(",")) + this.write(item);
    return `[${text}]`;
  }

  #writeDict(map: Map<unknown, unknown>): string {
    this.#count("{}");
    const entries = new Map<string, string>();
    for (const [key, item] of map) {
      const name = typeof key === "string" ? key : this.write(key).replaceAll(/^"|"$/g, "");
      if (entries.has(name))
        this.#warnings.add(`Two keys of a dict have the same text ${JSON.stringify(name.slice(0, 80))}; the last one is in the result.`);
      entries.set(name, `${this.#count(JSON.stringify(name))}${this.#count(":")}${this.write(item)}`);
    }
    return `{${[...entries.values()].join(",")}}`;
  }

  #writeBytes(value: Uint8Array): string {
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(value);
    } catch {
      this.#warnings.add("bytes that are not UTF-8 text are in the result as base64.");
      text = Buffer.from(value).toString("base64");
    }
    return this.#count(JSON.stringify(text));
  }
}

/** Values that Monty returns as tagged objects, in the form of all results: ISO 8601, seconds, or their text. */
function fromMontyObject(value: Record<string, unknown>): string | number {
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

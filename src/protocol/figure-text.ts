import type { FigureAxis, FigureValue } from "./figure.ts";

/** A place on an axis of a figure. `category` and `nanoseconds` come from the lists of the series. */
export interface FigurePlace {
  readonly value: FigureValue;
  readonly category?: number | undefined;
  readonly nanoseconds?: number | null | undefined;
}

/** The category or the tick label at a place; null if it has none. */
export function createTickLabels({ tickLabels = [] }: FigureAxis): (place: FigurePlace) => string | null {
  const texts = new Map(tickLabels.map(({ at, text }) => [at, text]));
  return ({ value, category }) => (category === undefined ? texts.get(value as number) : tickLabels[category]?.text) ?? null;
}

/** A place as a reader expects it: a time in the zone of its axis, otherwise the number. */
export function toPlaceText({ scale, zone }: FigureAxis, { value, nanoseconds }: FigurePlace): FigureValue {
  return scale === "time" && typeof value === "number" ? toTimeText(value, zone, nanoseconds ?? undefined) : value;
}

/** Formats milliseconds since 1970 as ISO 8601: with the offset of the zone, or without one for wall-clock times. */
function toTimeText(milliseconds: number, zone: string | undefined, nanoseconds?: number): string {
  const whole = Math.floor(milliseconds);
  const microseconds = Math.round((milliseconds - whole) * 1000);
  const rest = nanoseconds ?? microseconds * 1000;
  const utc = new Date(rest === 1_000_000 ? whole + 1 : whole);
  if (Number.isNaN(utc.getTime())) return String(milliseconds);
  const offset = zone === undefined ? "" : readOffset(utc, zone);
  const local = new Date(utc.getTime() + toMinutes(offset) * 60_000);
  const [date, digits = ""] = local.toISOString().slice(0, -1).split(".");
  const fraction = `${digits}${String(rest % 1_000_000).padStart(6, "0")}`.replace(/(?:000){1,3}$/, "");
  return `${date}${fraction === "" ? "" : `.${fraction}`}${offset}`;
}

const formats = new Map<string, Intl.DateTimeFormat | null>();

/** The offset of a zone at a time, such as `+02:00`. UTC if this runtime does not know the zone. */
function readOffset(time: Date, zone: string): string {
  if (!formats.has(zone)) formats.set(zone, createFormat(zone));
  const parts = formats.get(zone)?.formatToParts(time) ?? [];
  const name = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  return name.replace("GMT", "").slice(0, 6) || "+00:00";
}

function createFormat(zone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  } catch {
    return null;
  }
}

function toMinutes(offset: string): number {
  const [hours = "0", minutes = "0"] = offset.slice(1).split(":");
  return (offset.startsWith("-") ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

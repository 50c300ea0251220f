const isoTime = /^(\d{4})-(\d{2})(?:-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:?\d{2})?)?)?$/;

export function isTimeText(text: string): boolean {
  return isoTime.test(text);
}

/** Parses an ISO 8601 time to milliseconds. A time without a zone is read as UTC, so that it looks the same on every machine. */
export function readTime(text: string): number {
  const [, year, month, day = "1", hour = "0", minute = "0", second = "0", fraction = "0", zone] = isoTime.exec(text) ?? [];
  if (year === undefined) return Number.NaN;
  const clock = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  return clock + Number(`0.${fraction}`) * 1000 - offsetOf(zone);
}

function offsetOf(zone: string | undefined): number {
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(zone ?? "") ?? [];
  return sign === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

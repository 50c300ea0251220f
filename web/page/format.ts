import { texts } from "../texts.ts";

/** Formats a size: 1,536 bytes are 1.5 KB. */
export function formatBytes(bytes: number): string {
  const units = texts.units.bytes;
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? ""}`;
}

export function formatDuration(ms: number): string {
  if (ms < 1) return texts.units.belowMs;
  if (ms < 999.5) return texts.units.ms(Math.round(ms));
  if (ms < 59_500) return texts.units.seconds((ms / 1000).toFixed(ms < 9_950 ? 1 : 0));
  const seconds = Math.round(ms / 1000);
  return texts.units.minutes(Math.floor(seconds / 60), seconds % 60);
}

export function formatCount(value: number): string {
  return value.toLocaleString("en-US");
}

/** Formats a time: the clock time for today, else the date. */
export function formatWhen(iso: string): string {
  const [date, now] = [new Date(iso), new Date()];
  const isToday = date.toDateString() === now.toDateString();
  return isToday
    ? date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString("en-GB", {
        day: "numeric",
        month: "short",
        ...(date.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }),
      });
}

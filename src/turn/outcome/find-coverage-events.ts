import { isRecord } from "../../errors/is-record.ts";
import type { Gap } from "../../protocol/turn-result.ts";
import type { Turn } from "../open-turn.ts";
import { readItemText } from "../read-item-text.ts";

const LISTED = 12;
const MAX_RESULT_BYTES = 256 * 1024;
const MAX_DEPTH = 4;

/**
 * Who entered, left or paused, as `derive_change_series` says it and results keep it under `coverage_events`. It takes nothing from an answer, but a total
 * over them means something else before and after, so it has to be said.
 */
export function findCoverageEvents({ ledger, conversation }: Pick<Turn, "ledger" | "conversation">): Gap[] {
  const found = new Set<string>();
  for (const { resultAlias, replacedIn } of ledger.cells) {
    const item = resultAlias === null || replacedIn !== null ? null : conversation.evidence.get(resultAlias);
    if (item === null || item.bytes > MAX_RESULT_BYTES) continue;
    for (const event of eventsIn(JSON.parse(readItemText(item) ?? "null"), MAX_DEPTH)) found.add(event);
  }
  if (found.size === 0) return [];
  const more = found.size > LISTED ? `; and ${found.size - LISTED} more` : "";
  return [
    { code: "coverage_events", severity: "info", detail: `Who was counted changed: ${[...found].slice(0, LISTED).join("; ")}${more}.` },
  ];
}

function eventsIn(value: unknown, depth: number): string[] {
  if (depth === 0 || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "coverage_events" && Array.isArray(inner) ? inner.flatMap(toWords) : eventsIn(inner, depth - 1),
  );
}

function toWords(event: unknown): string[] {
  if (!isRecord(event)) return [];
  const { entity, kind, period, value } = event;
  if (typeof entity !== "string" || typeof kind !== "string" || typeof period !== "string") return [];
  const day = period.replace(/T00:00:00(?:\.0+)?(?:Z|\+00:00)?$/, "");
  const size = typeof value === "number" ? ` with ${value.toLocaleString("en-US", { maximumFractionDigits: 2 })}` : "";
  return [`${entity} ${wordsOfKind.get(kind) ?? kind.replaceAll("_", " ")} on ${day}${size}`];
}

const wordsOfKind: ReadonlyMap<string, string> = new Map([
  ["first_listed", "was first listed"],
  ["delisted", "was delisted"],
  ["gap_start", "stopped reporting"],
  ["gap_end", "reported again"],
]);

import { asSentence } from "../as-sentence.ts";
import type { Turn } from "../open-turn.ts";
import type { StepsEnd } from "./run-steps.ts";

/** The model came to an end of its own, but the picture that was asked for needs Python, and there is none here. Null when nothing was missed. */
export function missedCapability({ plan, ledger, gaps }: Turn): StepsEnd | null {
  const reason =
    ledger.calls.findLast(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE")?.failure?.reason ??
    gaps.find(({ code }) => code === "sandbox_unavailable")?.detail;
  const isDrawn = ledger.cells.length > 0 || ledger.artifacts.length > 0;
  if (reason === undefined || isDrawn || plan.chartIntent !== "explicit") return null;
  return { stopReason: "capability_miss", detail: `This needs Python, and no sandbox can be had here. ${asSentence(reason)}` };
}

import type { Turn } from "../open-turn.ts";
import type { StepsEnd } from "./run-steps.ts";

/** The model came to an end of its own, but the picture that was asked for needs Python, and there is none here. Null when nothing was missed. */
export function missedCapability({ plan, ledger, gaps }: Turn): StepsEnd | null {
  const said = ledger.calls.findLast(({ failure }) => failure?.code === "SANDBOX_UNAVAILABLE")?.failure?.reason;
  const hasNoSandbox = said !== undefined || gaps.some(({ code }) => code === "sandbox_unavailable");
  const isDrawn = ledger.cells.length > 0 || ledger.artifacts.length > 0;
  if (!hasNoSandbox || isDrawn || plan.chartIntent !== "explicit") return null;
  const because = said === undefined ? "" : ` ${said}`;
  return { stopReason: "capability_miss", detail: `This needs Python, and no sandbox can be had here.${because}` };
}

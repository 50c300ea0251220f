import type { ChartIntent, TurnPlan } from "../../protocol/turn-plan.ts";

const asksForPicture =
  /\b(?:chart|plot|graph|figure|diagram|histogram|heat ?map|candlestick|scatter|draw|visuali[sz]e|visuali[sz]ation|picture|sketch)(?:s|ed|ting)?\b/i;
const refusesPicture =
  /\b(?:no|without|not|don't|do not)\b[^.?!]{0,24}\b(?:an?y? )?(?:chart|plot|graph|figure|diagram|picture|visuali[sz]ation|draw)/i;
const isBestSeen =
  /\b(?:trend|over time|evol(?:ve|ution)|history of|distribution|compare|comparison|correlat\w+|develop(?:ed|ment) (?:of|over)|by (?:day|week|month|quarter|year))\b/i;

/** Reads a question without a model: what it says about pictures, and itself as the measure. */
export function planByRules(question: string, because: string): TurnPlan {
  return { chartIntent: readChartIntent(question), measures: [], population: "everything that was asked about", source: "rules", because };
}

export function readChartIntent(question: string): ChartIntent {
  if (refusesPicture.test(question)) return "none";
  if (asksForPicture.test(question)) return "explicit";
  return isBestSeen.test(question) ? "implied" : "none";
}

import type { TurnPlan } from "../../../src/protocol/turn-plan.ts";
import { texts } from "../../texts.ts";

export function PlanLine({ plan }: { plan: TurnPlan }) {
  const facts = [texts.turn.intents[plan.chartIntent], plan.population, texts.turn.planSource[plan.source], plan.because].filter(Boolean);
  return (
    <li className="plan">
      <span className="mark mark-ok" aria-hidden />
      <span className="call-tool">{texts.turn.plan}</span>
      <span>{plan.measures.join(", ")}</span>
      <span className="soft">{facts.join(" · ")}</span>
    </li>
  );
}

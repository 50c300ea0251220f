import type { TurnEvent } from "../protocol/turn-events.ts";
import { formatBytes, formatSeconds } from "./progress-printer.ts";
import { toTerminal } from "./terminal.ts";

type Write = (text: string) => void;

/** Creates a printer for the events of a turn. Servers, tools, rows and printed output go to `progress`, the answer goes to `answer` piece by piece. */
export function createTurnPrinter({ progress, answer }: { progress: Write; answer: Write }): (event: TurnEvent) => void {
  const line = (text: string): void => progress(`${toTerminal(text)}\n`);
  let isLineOpen = false;
  let isAnswering = false;

  return (event) => {
    if (isLineOpen && event.type !== "cell-output") {
      progress("\n");
      isLineOpen = false;
    }
    switch (event.type) {
      case "plan":
        return line(describePlan(event));
      case "step-start":
        return line(`step ${event.step} of at most ${event.of}${event.forced === undefined ? "" : ` (${event.forced})`}`);
      case "tool-start":
        return event.tool === "final_response"
          ? undefined
          : line(`${indentOf(event)}  … ${nameOf(event)}${event.intent === undefined ? "" : `: ${event.intent}`}`);
      case "tool-progress":
        return line(`    ${event.message ?? "working"} (${event.progress}${event.total === undefined ? "" : ` of ${event.total}`})`);
      case "tool-end":
        return event.tool === "final_response" && event.status === "ok" ? undefined : line(describeEnd(event));
      case "cell-output": {
        const lines = toTerminal(event.text).replaceAll(/\n(?!$)/g, "\n  | ");
        progress(isLineOpen ? lines : `  | ${lines}`);
        isLineOpen = !event.text.endsWith("\n");
        return;
      }
      case "artifact": {
        const { artifact } = event;
        return line(`  ✓ ${artifact.kind === "image" ? "figure" : "chart"}: ${artifact.title ?? artifact.alt ?? artifact.contentHash}`);
      }
      case "answer-delta":
        if (!isAnswering) progress("\n");
        isAnswering = true;
        return answer(toTerminal(event.text));
      case "approval-request": // the approval question shows the call
      case "approval-end":
      case "cell-start":
      case "turn-start":
      case "turn-end":
        return;
    }
  };
}

type Named = Extract<TurnEvent, { type: "tool-start" | "tool-end" }>;

function nameOf({ server, tool }: Named): string {
  return server === undefined ? tool : `${server} · ${tool}`;
}

/** Calls of a script are indented below the script. */
function indentOf({ within }: Named): string {
  return within === undefined ? "" : "  ";
}

function describePlan({ plan, steps }: Extract<TurnEvent, { type: "plan" }>): string {
  const measures = plan.measures.length === 0 ? "" : `; ${plan.measures.join(", ")}`;
  const rules = plan.source === "rules" ? ` (by rules: ${plan.because})` : "";
  return `plan: chart ${plan.chartIntent}${measures}; over ${plan.population}; at most ${steps} steps${rules}`;
}

function describeEnd(event: Extract<TurnEvent, { type: "tool-end" }>): string {
  const { status, durationMs, alias, rows, bytes, reason } = event;
  if (status !== "ok") return `${indentOf(event)}  ✗ ${nameOf(event)}: ${reason ?? status}`;
  const facts = [
    rows === undefined ? "" : `${rows.toLocaleString("en-US")} ${rows === 1 ? "row" : "rows"}`,
    bytes === undefined ? "" : formatBytes(bytes),
    formatSeconds(durationMs),
    alias === undefined ? "" : `as ${alias}`,
  ];
  return `${indentOf(event)}  ✓ ${nameOf(event)}: ${facts.filter((fact) => fact !== "").join(", ")}`;
}

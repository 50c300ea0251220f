import type { Confidence, Gap, Grounding, StopReason } from "../../protocol/turn-result.ts";

/** Low when the stop is bounded, failed, or a major gap is there; medium with a minor gap or a failed tool call; else high. */
export function toConfidence({
  stopReason,
  gaps,
  grounding,
}: {
  stopReason: StopReason;
  gaps: readonly Gap[];
  grounding: Grounding;
}): Confidence {
  const major = gaps.find(({ severity }) => severity === "major");
  const minor = gaps.find(({ severity }) => severity === "minor");
  if (stopReason !== "complete_answer") return { level: "low", reason: major?.detail ?? `The turn ended as ${stopReason}.` };
  if (major !== undefined) return { level: "low", reason: major.detail };
  if (minor !== undefined) return { level: "medium", reason: minor.detail };
  const { toolCallFailureCount: failures } = grounding;
  if (failures > 0) return { level: "medium", reason: `${failures} tool ${failures === 1 ? "call" : "calls"} failed on the way.` };
  return { level: "high", reason: "The answer is complete, and no tool call failed." };
}

import { expect, test } from "vitest";
import type { TurnEvent } from "../protocol/turn-events.ts";
import { createTurnPrinter } from "./turn-printer.ts";

const plan = { chartIntent: "explicit", measures: ["net flow"], population: "all venues", source: "rules", because: "no plan" } as const;
const events: TurnEvent[] = [
  { type: "plan", plan: { ...plan, measures: ["net flow"] }, steps: 14 },
  { type: "step-start", step: 1, of: 14 },
  { type: "tool-start", step: 1, callId: "1", tool: "get_reserves", server: "market" },
  { type: "tool-progress", callId: "1", tool: "get_reserves", progress: 1, total: 2, message: "reading" },
  {
    type: "tool-end",
    step: 1,
    callId: "1",
    tool: "get_reserves",
    server: "market",
    status: "ok",
    durationMs: 1234,
    alias: "get_reserves_1",
    rows: 28_878,
    bytes: 2e6,
  },
  { type: "tool-end", step: 1, callId: "2", tool: "get_prices", server: "market", status: "error", durationMs: 5, reason: "HTTP 503" },
  { type: "step-start", step: 2, of: 14, forced: "python_code_edit" },
  { type: "tool-start", step: 2, callId: "3", tool: "python_code_edit", intent: "Sum it up." },
  { type: "cell-output", callId: "call-1", stream: "stdout", text: "one\ntwo" },
  { type: "cell-output", callId: "call-1", stream: "stdout", text: " and\u001B[2J more" },
  { type: "tool-end", step: 2, callId: "3", tool: "python_code_edit", status: "ok", durationMs: 50 },
  { type: "tool-start", step: 2, callId: "5", tool: "execute" },
  { type: "tool-start", step: 2, callId: "5/1", tool: "get_prices", server: "market", within: "5" },
  {
    type: "tool-end",
    step: 2,
    callId: "5/1",
    tool: "get_prices",
    server: "market",
    status: "ok",
    durationMs: 9,
    alias: "get_prices_1",
    rows: 1,
    bytes: 10,
    within: "5",
  },
  {
    type: "tool-end",
    step: 2,
    callId: "5/2",
    tool: "get_news",
    server: "market",
    status: "refused",
    durationMs: 0,
    reason: "no such tool",
    within: "5",
  },
  { type: "tool-end", step: 2, callId: "5", tool: "execute", status: "ok", durationMs: 200 },
  { type: "tool-start", step: 3, callId: "4", tool: "final_response" },
  { type: "tool-end", step: 3, callId: "4", tool: "final_response", status: "ok", durationMs: 1 },
  { type: "answer-delta", text: "It fell.\n" },
];

test("prints servers, tools, rows and output, without control characters", () => {
  let progress = "";
  let answer = "";
  const show = createTurnPrinter({ progress: (text) => (progress += text), answer: (text) => (answer += text) });
  for (const event of events) show(event);
  expect(progress.split("\n")).toEqual([
    "plan: chart explicit; net flow; over all venues; at most 14 steps (by rules: no plan)",
    "step 1 of at most 14",
    "  … market · get_reserves",
    "    reading (1 of 2)",
    "  ✓ market · get_reserves: 28,878 rows, 2 MB, 1.2 s, as get_reserves_1",
    "  ✗ market · get_prices: HTTP 503",
    "step 2 of at most 14 (python_code_edit)",
    "  … python_code_edit: Sum it up.",
    "  | one",
    "  | two and␛[2J more",
    "  ✓ python_code_edit: 0.1 s",
    "  … execute",
    "    … market · get_prices",
    "    ✓ market · get_prices: 1 row, 10 B, 0.0 s, as get_prices_1",
    "    ✗ market · get_news: no such tool",
    "  ✓ execute: 0.2 s",
    "",
    "",
  ]);
  expect(answer).toBe("It fell.\n");
});

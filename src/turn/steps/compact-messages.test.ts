import type { ModelMessage } from "ai";
import { describe, expect, test } from "vitest";
import { compactMessages } from "./compact-messages.ts";

const called = (toolCallId: string, input: unknown): ModelMessage => ({
  role: "assistant",
  content: [{ type: "tool-call", toolCallId, toolName: "code_interpreter", input }],
});
const question: ModelMessage = { role: "user", content: "x".repeat(5_000) };
const code = (letter: string): string => letter.repeat(1_000);
const cut = (letter: string): string => `${letter.repeat(300)}… [700 characters were left out to make room]`;

describe("what a model wrote in earlier steps", () => {
  test("stays as it is while it fits; questions do not count", () => {
    const messages = [question, called("1", { code: code("a") }), { role: "assistant", content: "Text." } as const];
    expect(compactMessages(messages, 1_100)).toEqual(messages);
  });

  test("gives way oldest first, down to three quarters of the budget, and stays an object", () => {
    const messages = [
      question,
      { role: "assistant", content: code("t") } as const,
      called("1", { code: code("a"), list: [1] }),
      called("2", { code: code("b") }),
      called("3", { code: code("c") }),
    ];
    const compacted = compactMessages(messages, 3_800);
    expect(compacted).toEqual([
      question,
      { role: "assistant", content: cut("t") },
      called("1", { code: cut("a"), list: [1] }),
      ...messages.slice(3),
    ]);
    expect(compactMessages(compacted, 3_800)).toEqual(compacted);
  });

  test("is cut even when it is the last, when it alone is too much; what is not text becomes a note", () => {
    const numbers = Array.from({ length: 5_000 }, (_, at) => at);
    const reasoning: ModelMessage = { role: "assistant", content: [{ type: "reasoning", text: code("r").repeat(50) }] };
    expect(compactMessages([reasoning, called("1", { code: code("a").repeat(1_000) })], 10_000)).toEqual([
      reasoning,
      called("1", { code: `${"a".repeat(300)}… [999700 characters were left out to make room]` }),
    ]);
    expect(compactMessages([called("1", { numbers })], 10_000)).toEqual([
      called("1", { note: `${JSON.stringify({ numbers }).length} characters of arguments were left out to make room` }),
    ]);
  });
});

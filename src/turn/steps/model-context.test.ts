import type { ModelMessage } from "ai";
import { describe, expect, test } from "vitest";
import { compactMessages } from "./model-context.ts";

const called = (toolCallId: string, input: unknown): ModelMessage => ({
  role: "assistant",
  content: [{ type: "tool-call", toolCallId, toolName: "code_interpreter", input }],
});
const question: ModelMessage = { role: "user", content: "x".repeat(5_000) };
const code = (letter: string): string => letter.repeat(1_000);
const cut = (letter: string): string => `${letter.repeat(300)}… [700 characters omitted to save space]`;

describe("compactMessages", () => {
  test("changes nothing while the model's messages fit; questions do not count", () => {
    const messages = [question, called("1", { code: code("a") }), { role: "assistant", content: "Text." } as const];
    expect(compactMessages(messages, 1_100)).toEqual(messages);
  });

  test("shortens the oldest messages first, down to three quarters of the budget; arguments stay an object", () => {
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

  test("shortens even the last message when it is too large; arguments without long texts become a note", () => {
    const numbers = Array.from({ length: 5_000 }, (_, at) => at);
    const reasoning: ModelMessage = { role: "assistant", content: [{ type: "reasoning", text: code("r").repeat(50) }] };
    expect(compactMessages([reasoning, called("1", { code: code("a").repeat(1_000) })], 10_000)).toEqual([
      reasoning,
      called("1", { code: `${"a".repeat(300)}… [999700 characters omitted to save space]` }),
    ]);
    expect(compactMessages([called("1", { numbers })], 10_000)).toEqual([
      called("1", { note: `${JSON.stringify({ numbers }).length} characters of arguments omitted to save space` }),
    ]);
  });
});

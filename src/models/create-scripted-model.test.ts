import { generateText, isStepCount, jsonSchema, Output, streamText, tool } from "ai";
import { describe, expect, it } from "vitest";
import type { ModelScript } from "./model-script.ts";
import { createScriptedModel } from "./create-scripted-model.ts";

const script: ModelScript = {
  plan: { chartIntent: "explicit" },
  steps: [
    { toolCalls: [{ tool: "add", input: { a: 1, b: 2 } }], text: "First I add.", usage: { inputTokens: 10, outputTokens: 5 } },
    {
      toolCalls: [
        { tool: "add", input: { a: 3, b: 4 } },
        { tool: "add", input: { a: 5, b: 6 } },
      ],
    },
    { text: "The sums are 3, 7 and 11." },
  ],
  synthesis: "Three sums were made.",
};

const add = tool({
  inputSchema: jsonSchema<{ a: number; b: number }>({ type: "object", properties: { a: { type: "number" }, b: { type: "number" } } }),
  execute: ({ a, b }) => a + b,
});
const final_response = tool({
  inputSchema: jsonSchema<{ answer: string }>({ type: "object", properties: { answer: { type: "string" } } }),
  outputSchema: jsonSchema<string>({ type: "string" }),
});
const phase = (name: string, step?: number) => ({ providerOptions: { sluice: { phase: name, ...(step === undefined ? {} : { step }) } } });

describe("a scripted model", () => {
  it("replies with its steps in the loop of the AI SDK", async () => {
    const { text, steps, usage } = await generateText({
      model: createScriptedModel(script),
      tools: { add },
      stopWhen: isStepCount(9),
      prompt: "Add.",
    });
    expect(text).toBe("The sums are 3, 7 and 11.");
    expect(steps.map(({ toolResults }) => toolResults.map(({ output }) => output))).toEqual([[3], [7, 11], []]);
    expect([usage.inputTokens, usage.outputTokens]).toEqual([10, 5]);
  });

  it("streams the same replies in pieces", async () => {
    const result = streamText({ model: createScriptedModel(script), tools: { add }, stopWhen: isStepCount(9), prompt: "Add." });
    const parts = await Array.fromAsync(result.stream);
    const deltas = parts.flatMap((part) => (part.type === "text-delta" ? [part.text] : []));
    expect(deltas.join("")).toBe("First I add.The sums are 3, 7 and 11.");
    expect(deltas.length).toBeGreaterThan(2);
    expect(parts.flatMap((part) => (part.type === "tool-result" ? [part.output] : []))).toEqual([3, 7, 11]);
    expect(await result.finishReason).toBe("stop");
  });

  it("answers a call for structured output with its plan, or with an empty object", async () => {
    const output = Output.object({ schema: jsonSchema<object>({ type: "object" }) });
    expect((await generateText({ model: createScriptedModel(script), output, prompt: "Plan." })).output).toEqual({
      chartIntent: "explicit",
    });
    expect((await generateText({ model: createScriptedModel({ steps: [{ text: "x" }] }), output, prompt: "Plan." })).output).toEqual({});
  });

  it("replies with the phase and step that the caller names", async () => {
    const model = createScriptedModel(script);
    const say = async (name: string, step?: number) => (await generateText({ model, prompt: "Go.", ...phase(name, step) })).text;
    expect(await say("synthesis")).toBe("Three sums were made.");
    expect(await say("plan")).toBe('{"chartIntent":"explicit"}');
    expect(await say("step", 2)).toBe("The sums are 3, 7 and 11.");
    expect(await say("step", 0)).toBe("First I add.");
  });

  it("repeats its last step when the steps run out, and starts over with a plan", async () => {
    const model = createScriptedModel({ steps: [{ text: "one" }, { text: "two" }] });
    const say = async (name: string) => (await generateText({ model, prompt: "Go.", ...phase(name) })).text;
    expect([await say("step"), await say("step"), await say("step")]).toEqual(["one", "two", "two"]);
    expect([await say("plan"), await say("step")]).toEqual(["{}", "one"]);
  });

  it("uses its last text as the synthesis when the script has none", async () => {
    const model = createScriptedModel({ steps: [{ text: "early" }, { text: "late" }, { toolCalls: [{ tool: "add", input: {} }] }] });
    expect((await generateText({ model, prompt: "Go.", ...phase("synthesis") })).text).toBe("late");
    const ended = createScriptedModel({
      steps: [{ text: "early" }, { toolCalls: [{ tool: "final_response", input: { answer: "It is 3." } }] }],
    });
    expect((await generateText({ model: ended, prompt: "Go.", ...phase("synthesis") })).text).toBe("It is 3.");
  });

  it("sends its answer through final_response when that tool is forced", async () => {
    const forced = { tools: { add, final_response }, toolChoice: { type: "tool", toolName: "final_response" } as const, prompt: "End." };
    const calls = async (wanted: ModelScript, step: number) =>
      (await generateText({ model: createScriptedModel(wanted), ...forced, ...phase("step", step) })).toolCalls.map(
        ({ toolName, input }) => [toolName, input],
      );
    expect(await calls(script, 0)).toEqual([["final_response", { answer: "Three sums were made." }]]);
    expect(await calls(script, 2)).toEqual([["final_response", { answer: "The sums are 3, 7 and 11." }]]);
    const own = { steps: [{ toolCalls: [{ tool: "final_response", input: { answer: "Mine." } }] }] };
    expect(await calls(own, 0)).toEqual([["final_response", { answer: "Mine." }]]);
  });

  it("stops as soon as the signal aborts", async () => {
    const model = createScriptedModel(script);
    const stop = new AbortController();
    const { stream } = await model.doStream({ prompt: [], abortSignal: stop.signal });
    const reader = stream.getReader();
    await reader.read();
    stop.abort(new Error("enough"));
    await expect(
      (async () => {
        for (;;) if ((await reader.read()).done) return;
      })(),
    ).rejects.toThrow("enough");
    await expect(model.doGenerate({ prompt: [], abortSignal: stop.signal })).rejects.toThrow("enough");
  });
});

import { MockLanguageModelV4 } from "ai/test";
import { createMemoryStore } from "../src/artifacts/artifact-store.ts";
import { createDatasetMemoryStore } from "../src/evidence/dataset/create-dataset-store.ts";
import type { TurnEvent } from "../src/protocol/turn-events.ts";
import type { TurnResult } from "../src/protocol/turn-result.ts";
import { createLocalSource, type LocalTool } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import type { TurnRequest } from "../src/turn/turn-request.ts";

type StreamResult = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
export type CallOptions = Parameters<MockLanguageModelV4["doStream"]>[0];

/** The reply of the scripted model in one step. */
export type StepReply =
  /** `isCut`: the connection breaks after the calls. */
  | { readonly calls: readonly { readonly tool: string; readonly input: unknown; readonly id?: string }[]; readonly isCut?: boolean }
  /** `finish`: the finish reason. Default: `stop`. */
  | { readonly text: string; readonly finish?: Finish }
  | { readonly error: Error }
  /** Sends this text, then the connection breaks. */
  | { readonly cut: string }
  | { readonly hang: true };

export interface Script {
  readonly plan?: object | Error;
  readonly steps: readonly StepReply[];
  readonly synthesis?: string | Error | { readonly text: string; readonly finish: Finish } | ((options: CallOptions) => string);
}

const tokens = { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 };
const usage = { inputTokens: tokens, outputTokens: { total: 5, text: 5, reasoning: 0 } };

/** A model that replies from a script and repeats its last step. `stepCalls` records what it was called with in each step. */
export function scriptedModel({ plan = {}, steps, synthesis }: Script): MockLanguageModelV4 & { stepCalls: CallOptions[] } {
  const stepCalls: CallOptions[] = [];
  let callId = 0;
  const model = new MockLanguageModelV4({
    doGenerate: async () => {
      if (plan instanceof Error) throw plan;
      const text = JSON.stringify(plan);
      return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
    },
    doStream: async (options) => {
      if (phaseOf(options) === "synthesis") {
        if (synthesis instanceof Error) throw synthesis;
        const reply = typeof synthesis === "function" ? synthesis(options) : (synthesis ?? "");
        const { text, finish: end = "stop" } = typeof reply === "string" ? { text: reply } : reply;
        return { stream: streamOf([...textParts(text), finish(end)]) };
      }
      const reply = steps[Math.min(stepCalls.length, steps.length - 1)]!;
      stepCalls.push(options);
      if ("error" in reply) throw reply.error;
      if ("hang" in reply) return { stream: new ReadableStream<StreamPart>({}) };
      if ("cut" in reply) return { stream: cutStream(textParts(reply.cut)) };
      if ("text" in reply) return { stream: streamOf([...textParts(reply.text), finish(reply.finish ?? "stop")]) };
      const calls = reply.calls.map(({ tool, input, id }): StreamPart => {
        callId += 1;
        return {
          type: "tool-call",
          toolCallId: id ?? `call-${callId}`,
          toolName: tool,
          input: typeof input === "string" ? input : JSON.stringify(input),
        };
      });
      return { stream: reply.isCut ? cutStream(calls) : streamOf([...calls, finish("tool-calls")]) };
    },
  });
  return Object.assign(model, { stepCalls });
}

export function phaseOf({ providerOptions }: CallOptions): string {
  return providerOptions?.["sluice"]?.["phase"] as string;
}

function textParts(text: string): StreamPart[] {
  if (text === "") return [];
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: text },
    { type: "text-end", id: "1" },
  ];
}

type Finish = "stop" | "tool-calls" | "length" | "content-filter";

function finish(unified: Finish): StreamPart {
  return { type: "finish", finishReason: { unified, raw: unified }, usage };
}

function streamOf(parts: readonly StreamPart[]): ReadableStream<StreamPart> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ type: "stream-start", warnings: [] });
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** The connection breaks a moment after the last part, as it would over a network. */
function cutStream(parts: readonly StreamPart[]): ReadableStream<StreamPart> {
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      if (sent < parts.length) return controller.enqueue(parts[sent++]!);
      await new Promise((resolve) => setTimeout(resolve, 50));
      controller.error(new TypeError("terminated"));
    },
  });
}

export function call(tool: string, input: unknown = {}): StepReply {
  return { calls: [{ tool, input }] };
}

export function final(answer: string, rest: object = {}): StepReply {
  return call("final_response", { answer, ...rest });
}

/** 300 days of prices, as integers. */
export const getPrices: LocalTool = {
  name: "get_prices",
  description: "Daily prices of a symbol.",
  inputSchema: { type: "object", properties: { symbol: { type: "string" } } },
  annotations: { readOnlyHint: true },
  execute: ({ symbol = "A" }) => Array.from({ length: 300 }, (_, day) => ({ day, symbol, price: 100 + (day % 7) })),
};

/** Reads the document of a dataset. */
export async function readDataset({ datasets }: Pick<TurnRequest, "datasets">, { dataset }: Pick<TurnResult, "dataset">): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of (await datasets.open(dataset!.hash))!.stream()) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

export interface TestTurn {
  readonly request: TurnRequest;
  readonly events: TurnEvent[];
  /** The events of one type. */
  of<Type extends TurnEvent["type"]>(type: Type): Extract<TurnEvent, { type: Type }>[];
}

export interface TestTurnOptions extends Partial<Omit<TurnRequest, "model">> {
  readonly model: Exclude<TurnRequest["model"], string>;
  readonly tools?: readonly LocalTool[];
}

/** A request with local tools and all stores in memory. */
export function testTurn(options: TestTurnOptions): TestTurn {
  const { tools = [getPrices], model, onEvent, ...rest } = options;
  const events: TurnEvent[] = [];
  const request: TurnRequest = {
    model,
    question: "What is the mean price of A?",
    catalog: createToolCatalog({ sources: [createLocalSource(tools)] }),
    policy: createToolPolicy(),
    artifacts: createMemoryStore(),
    datasets: createDatasetMemoryStore(),
    onEvent: (event) => {
      events.push(event);
      onEvent?.(event);
    },
    turnId: "turn-1",
    ...rest,
  };
  return {
    request,
    events,
    of: <Type extends TurnEvent["type"]>(type: Type) =>
      events.filter((event): event is Extract<TurnEvent, { type: Type }> => event.type === type),
  };
}

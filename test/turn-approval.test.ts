import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { turnEventSchema, type ApprovalRequestEvent, type TurnEvent } from "../src/protocol/turn-events.ts";
import type { TurnResult } from "../src/protocol/turn-result.ts";
import type { LocalTool } from "../src/tools/create-local-source.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { createApprovals } from "../src/turn/create-approvals.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, getPrices, scriptedModel, testTurn, type Said, type TestTurn, type TestTurnOptions } from "./turn-fixtures.ts";

const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

function destroyer(): { readonly tool: LocalTool; readonly dropped: unknown[] } {
  const dropped: unknown[] = [];
  const execute = (args: unknown): unknown => (dropped.push(args), { dropped: 1 });
  return { dropped, tool: { ...getPrices, name: "drop", annotations: { destructiveHint: true }, execute } };
}

type Ran = TestTurn & { result: TurnResult; dropped: unknown[]; model: ReturnType<typeof scriptedModel> };

async function run(steps: readonly Said[], options: Partial<TestTurnOptions> = {}): Promise<Ran> {
  const { tool, dropped } = destroyer();
  const model = scriptedModel({ steps: [...steps, final("Done.")] });
  const turn = testTurn({ tools: [getPrices, tool], ...options, model });
  const result = await runTurn(runtime, turn.request);
  for (const event of turn.events) turnEventSchema.parse(event);
  expect(turn.events.at(-1)?.type).toBe("turn-end");
  return { ...turn, result, dropped, model };
}

const script = (code: string): Said => call("execute", { code });
const statuses = ({ trace }: TurnResult): string[] => trace.flatMap(({ calls }) => calls.map(({ tool, status }) => `${tool} ${status}`));

describe("a tool that may destroy", () => {
  test("is called when a person says yes, and only then; whoever fails to answer has said no", async () => {
    const steps = ["A", "B", "C"].map((symbol) => call("drop", { symbol }));
    const { of, result, dropped } = await run(steps, {
      approve: async ({ arguments: { symbol } }) => {
        if (symbol === "C") throw new Error("the page is gone");
        return symbol === "B" ? true : { approved: false, because: "the person said no." };
      },
    });
    expect(dropped).toEqual([{ symbol: "B" }]);
    const asked = of("approval-request");
    expect(asked).toEqual(
      ["A", "B", "C"].map((symbol, at) => ({
        type: "approval-request",
        approvalId: asked[at]!.approvalId,
        callId: `call-${at + 1}`,
        tool: "drop",
        server: "local",
        arguments: { symbol },
      })),
    );
    expect(new Set(asked.map(({ approvalId }) => approvalId)).size).toBe(3);
    expect(of("approval-end")).toEqual(
      ["refused", "approved", "refused"].map((answer, at) => ({
        type: "approval-end",
        approvalId: asked[at]!.approvalId,
        callId: `call-${at + 1}`,
        answer,
      })),
    );
    expect(statuses(result)).toEqual(["drop refused", "drop ok", "drop refused", "final_response ok"]);
    expect(result.grounding.failures).toEqual([
      { tool: "drop", reason: "drop was not called: it says that it is destructive, and this call was not approved: the person said no." },
      { tool: "drop", reason: "drop was not called: it says that it is destructive, and this call was not approved." },
    ]);
  });

  test("on the allow-list is not asked about; under read-only nobody can approve it", async () => {
    const allowed = await run([call("drop")], { policy: createToolPolicy({ allow: ["drop"] }), approve: async () => false });
    expect([allowed.dropped.length, allowed.of("approval-request").length]).toEqual([1, 0]);
    const forbidden = await run([call("drop")], { policy: createToolPolicy({ toolPolicy: "read-only" }), approve: async () => true });
    expect([forbidden.dropped.length, forbidden.of("approval-request").length]).toEqual([0, 0]);
    expect(forbidden.model.stepCalls[0]!.tools!.map(({ name }) => name)).not.toContain("drop");
  });
});

describe("a call of a script", () => {
  const code = `await call_tool("drop", {"symbol": "A"})\nreturn await call_tool("drop", {"symbol": "B"})`;

  test("is asked about too, and its wait is not the script's own time", async () => {
    const { of, result, dropped } = await run([script(code)], {
      codeMode: { engine: "monty", limits: { executionMs: 2_500 } },
      approve: async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_500)); // both together are longer than all that the script may take
        return true;
      },
    });
    expect(dropped).toEqual([{ symbol: "A" }, { symbol: "B" }]);
    expect(of("approval-request").map(({ callId, tool }) => [callId, tool])).toEqual([
      ["call-1", "drop"],
      ["call-1", "drop"],
    ]);
    expect(statuses(result)).toEqual(["execute ok", "drop ok", "drop ok", "final_response ok"]);
  });

  test("that is not approved is an error that the script can catch", async () => {
    const caught = `try:\n    await call_tool("drop", {"symbol": "A"})\nexcept Exception as error:\n    return "not approved" in str(error)`;
    const { result, dropped, model } = await run([script(caught)], { approve: async () => false });
    expect(dropped).toEqual([]);
    expect(JSON.stringify(model.stepCalls[1]!.prompt)).toContain(String.raw`{\"status\":\"ok\",\"result\":true,`);
    expect(statuses(result)).toEqual(["execute ok", "drop refused", "final_response ok"]);
  });

  test("without anybody to ask is refused with what to configure", async () => {
    const { result, dropped } = await run([script(code)]);
    expect(dropped).toEqual([]);
    expect(result.grounding.failures[0]).toEqual({
      tool: "drop",
      reason: "drop may not be called: it says that it is destructive, and it is not on the allow-list.",
    });
  });
});

describe("a question that nobody answers", () => {
  const waiting = async (steps: readonly Said[], options: Partial<TestTurnOptions> = {}) => {
    const approvals = createApprovals();
    const ran = await run(steps, { approve: approvals.approve, ...options });
    expect(approvals.pending()).toEqual([]);
    expect(ran.dropped).toEqual([]);
    expect(ran.of("approval-end").map(({ answer }) => answer)).toEqual(["abandoned"]);
    return ran.result;
  };
  const onRequest = (act: (event: ApprovalRequestEvent) => void) => (event: TurnEvent) =>
    void (event.type === "approval-request" && act(event));

  test.each([
    ["the model", call("drop")],
    ["a script", script(`return await call_tool("drop", {})`)],
  ])("is settled by an abort, when %s made the call", async (_, step) => {
    const abort = new AbortController();
    const result = await waiting([step], { signal: abort.signal, onEvent: onRequest(() => setTimeout(() => abort.abort(), 20)) });
    expect(result.outcome.stopReason).toBe("aborted");
  });

  test("is settled when the turn's time is over", async () => {
    const result = await waiting([call("drop")], { budgets: { wallMs: 4_000 } });
    expect(result.outcome.stopReason).toBe("bounded_time");
  });
});

describe("questions answered from elsewhere", () => {
  const request = (approvalId: string): ApprovalRequestEvent => ({
    type: "approval-request",
    approvalId,
    callId: "call-1",
    tool: "drop",
    server: "local",
    arguments: {},
  });

  test("are pending until they are answered, each once", async () => {
    const approvals = createApprovals();
    const { signal } = new AbortController();
    const asked = [approvals.approve(request("a"), signal), approvals.approve(request("b"), signal)];
    expect(approvals.pending().map(({ approvalId }) => approvalId)).toEqual(["a", "b"]);
    expect([approvals.answer("b", false), approvals.answer("b", true), approvals.answer("c", true), approvals.answer("a", true)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(await Promise.all(asked)).toEqual([true, false]);
    expect(approvals.pending()).toEqual([]);
  });
});

import { afterAll, describe, expect, test } from "vitest";
import { cacheDirectory } from "../src/config/environment.ts";
import { createRuntime } from "../src/create-runtime.ts";
import { turnEventSchema, type ApprovalRequestEvent, type TurnEvent } from "../src/protocol/turn-events.ts";
import type { TurnResult } from "../src/protocol/turn-result.ts";
import type { ToolAnswer } from "../src/tools/backend-tool.ts";
import type { LocalTool } from "../src/tools/create-local-source.ts";
import { createToolCatalog } from "../src/tools/create-tool-catalog.ts";
import { sampleSource, sampleTool } from "../src/tools/fixtures/sample-tools.ts";
import { createToolPolicy } from "../src/tools/tool-policy.ts";
import { createApprovals } from "../src/turn/create-approvals.ts";
import { runTurn } from "../src/turn/run-turn.ts";
import { call, final, getPrices, scriptedModel, testTurn, type StepReply, type TestTurn, type TestTurnOptions } from "./turn-fixtures.ts";

const runtime = createRuntime({ cacheDirectory: cacheDirectory(), poolSize: 0 });
afterAll(() => runtime.close());

function destroyer(): { readonly tool: LocalTool; readonly dropped: unknown[] } {
  const dropped: unknown[] = [];
  const execute = (args: unknown): unknown => (dropped.push(args), { dropped: 1 });
  return { dropped, tool: { ...getPrices, name: "drop", annotations: { destructiveHint: true }, execute } };
}

type CompletedTurn = TestTurn & { result: TurnResult; dropped: unknown[]; model: ReturnType<typeof scriptedModel> };

async function run(steps: readonly StepReply[], options: Partial<TestTurnOptions> = {}): Promise<CompletedTurn> {
  const { tool, dropped } = destroyer();
  const model = scriptedModel({ steps: [...steps, final("Done.")] });
  const turn = testTurn({ tools: [getPrices, tool], ...options, model });
  const result = await runTurn(runtime, turn.request);
  for (const event of turn.events) turnEventSchema.parse(event);
  expect(turn.events.at(-1)?.type).toBe("turn-end");
  return { ...turn, result, dropped, model };
}

const script = (code: string): StepReply => call("execute", { code });
const statuses = ({ trace }: TurnResult): string[] => trace.flatMap(({ calls }) => calls.map(({ tool, status }) => `${tool} ${status}`));

describe("a destructive tool", () => {
  test("runs only after approval; a failed approval refuses the call", async () => {
    const steps = ["A", "B", "C"].map((symbol) => call("drop", { symbol }));
    const { of, result, dropped } = await run(steps, {
      approve: async ({ arguments: { symbol } }) => {
        if (symbol === "C") throw new Error("the page is gone");
        return symbol === "B" ? true : { approved: false, because: "the person said no." };
      },
    });
    expect(dropped).toEqual([{ symbol: "B" }]);
    const requests = of("approval-request");
    expect(requests).toEqual(
      ["A", "B", "C"].map((symbol, at) => ({
        type: "approval-request",
        approvalId: requests[at]!.approvalId,
        callId: `call-${at + 1}`,
        tool: "drop",
        server: "local",
        arguments: { symbol },
      })),
    );
    expect(new Set(requests.map(({ approvalId }) => approvalId)).size).toBe(3);
    expect(of("approval-end")).toEqual(
      ["refused", "approved", "refused"].map((answer, at) => ({
        type: "approval-end",
        approvalId: requests[at]!.approvalId,
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

  test("on the allow-list needs no approval; under read-only it cannot be approved", async () => {
    const allowed = await run([call("drop")], { policy: createToolPolicy({ allow: ["drop"] }), approve: async () => false });
    expect([allowed.dropped.length, allowed.of("approval-request").length]).toEqual([1, 0]);
    const forbidden = await run([call("drop")], { policy: createToolPolicy({ toolPolicy: "read-only" }), approve: async () => true });
    expect([forbidden.dropped.length, forbidden.of("approval-request").length]).toEqual([0, 0]);
    expect(forbidden.model.stepCalls[0]!.tools!.map(({ name }) => name)).not.toContain("drop");
  });
});

describe("a tool of a server that says nothing about itself", () => {
  const called: unknown[] = [];
  const answer = (args: unknown): Promise<ToolAnswer> => (called.push(args), Promise.resolve({ output: { fine: true }, as: "value" }));
  const tools = [sampleTool({ name: "get_rows", server: "public", isLocal: false, call: answer })];
  const catalog = createToolCatalog({ sources: [sampleSource("public", tools)] });
  const steps = [call("get_rows", { n: 1 }), script('return await call_tool("get_rows", {"n": 2})')];

  test("is shown to the model, and its refusal has the line that allows it", async () => {
    const mcpServers = { public: { url: "http://127.0.0.1:1/", allow: [] } };
    const { model, result } = await run(steps, { catalog, policy: createToolPolicy({ mcpServers }) });
    expect(model.stepCalls[0]!.tools!.map(({ name }) => name)).toContain("get_rows");
    expect(called).toEqual([]);
    const reasons = result.grounding.failures.map(({ reason }) => reason);
    expect(reasons).toHaveLength(3);
    for (const reason of reasons)
      expect(reason).toContain('To allow it, set "allow": ["get_rows"] in mcpServers.public of sluice.config.json');
    const { allow } = JSON.parse(`{${/"allow": \[.*?\]/.exec(reasons[0]!)![0]}}`) as { allow: string[] };
    const permitted = await run(steps, { catalog, policy: createToolPolicy({ mcpServers: { public: { ...mcpServers.public, allow } } }) });
    expect(called).toEqual([{ n: 1 }, { n: 2 }]);
    expect(permitted.of("approval-request")).toEqual([]);
  });

  test("is called after approval", async () => {
    called.length = 0;
    const { of } = await run(steps, { catalog, approve: async ({ arguments: { n } }) => n === 2 });
    expect([called, of("approval-request").length]).toEqual([[{ n: 2 }], 2]);
  });
});

describe("a call of a script", () => {
  const code = `await call_tool("drop", {"symbol": "A"})\nreturn await call_tool("drop", {"symbol": "B"})`;

  test("needs approval too, and the wait does not count towards the time limit of the script", async () => {
    const { of, result, dropped } = await run([script(code)], {
      codeMode: { engine: "monty", limits: { executionMs: 2_500 } },
      approve: async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_500)); // both waits together exceed the time limit of the script
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

  test("without approval raises an error that the script can catch", async () => {
    const caught = `try:\n    await call_tool("drop", {"symbol": "A"})\nexcept Exception as error:\n    return "not approved" in str(error)`;
    const { result, dropped, model } = await run([script(caught)], { approve: async () => false });
    expect(dropped).toEqual([]);
    expect(JSON.stringify(model.stepCalls[1]!.prompt)).toContain(String.raw`{\"status\":\"ok\",\"result\":true,`);
    expect(statuses(result)).toEqual(["execute ok", "drop refused", "final_response ok"]);
  });

  test("is refused with a configuration hint when there is no `approve`", async () => {
    const { result, dropped } = await run([script(code)]);
    expect(dropped).toEqual([]);
    expect(result.grounding.failures[0]).toEqual({
      tool: "drop",
      reason:
        'drop may not be called: it says that it is destructive, and it is not on the allow-list. To allow it, pass it to the tool policy: createToolPolicy({ allow: ["local__drop"] }).',
    });
  });
});

describe("an approval request without an answer", () => {
  const waiting = async (steps: readonly StepReply[], options: Partial<TestTurnOptions> = {}) => {
    const approvals = createApprovals();
    const turn = await run(steps, { approve: approvals.approve, ...options });
    expect(approvals.pending()).toEqual([]);
    expect(turn.dropped).toEqual([]);
    expect(turn.of("approval-end").map(({ answer }) => answer)).toEqual(["abandoned"]);
    return turn.result;
  };
  const onRequest = (act: (event: ApprovalRequestEvent) => void) => (event: TurnEvent) =>
    void (event.type === "approval-request" && act(event));

  test.each([
    ["the model", call("drop")],
    ["a script", script(`return await call_tool("drop", {})`)],
  ])("ends with an abort when %s requested the call", async (_, step) => {
    const abort = new AbortController();
    const result = await waiting([step], { signal: abort.signal, onEvent: onRequest(() => setTimeout(() => abort.abort(), 20)) });
    expect(result.outcome.stopReason).toBe("aborted");
  });

  test("ends with the time limit of the turn", async () => {
    const result = await waiting([call("drop")], { budgets: { wallMs: 4_000 } });
    expect(result.outcome.stopReason).toBe("bounded_time");
  });
});

describe("createApprovals", () => {
  const request = (approvalId: string): ApprovalRequestEvent => ({
    type: "approval-request",
    approvalId,
    callId: "call-1",
    tool: "drop",
    server: "local",
    arguments: {},
  });

  test("keeps a request pending until its first answer", async () => {
    const approvals = createApprovals();
    const { signal } = new AbortController();
    const answers = [approvals.approve(request("a"), signal), approvals.approve(request("b"), signal)];
    expect(approvals.pending().map(({ approvalId }) => approvalId)).toEqual(["a", "b"]);
    expect([approvals.answer("b", false), approvals.answer("b", true), approvals.answer("c", true), approvals.answer("a", true)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(await Promise.all(answers)).toEqual([true, false]);
    expect(approvals.pending()).toEqual([]);
  });
});

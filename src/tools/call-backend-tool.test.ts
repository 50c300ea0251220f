import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { callBackendTool, type BackendCall, type BackendReply } from "./call-backend-tool.ts";
import type { BackendTool, ToolAnswer } from "./backend-tool.ts";
import { createLocalSource } from "./create-local-source.ts";
import { createToolCatalog } from "./create-tool-catalog.ts";
import { sampleSource, sampleTool } from "./fixtures/sample-tools.ts";
import { createToolPolicy, type ToolPolicyOptions } from "./tool-policy.ts";

const httpError = (status: number, headers: Record<string, string> = {}): Error => Object.assign(new Error("no"), { status, headers });

/** A catalog with one tool that answers or fails in this order. */
function toolThat(
  outcomes: readonly unknown[],
  facts: Partial<BackendTool> = {},
): { tool: BackendTool; call: ReturnType<typeof vi.fn<BackendTool["call"]>> } {
  const left = [...outcomes];
  const call = vi.fn<BackendTool["call"]>(() => {
    const next = left.shift();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve<ToolAnswer>({ output: next, as: "mcp" });
  });
  return { call, tool: sampleTool({ ...facts, call }) };
}

async function callTool(tool: BackendTool, call: Partial<BackendCall> = {}, policy: ToolPolicyOptions = {}): Promise<BackendReply> {
  await using catalog = createToolCatalog({ sources: [sampleSource("market", [tool])] });
  return await callBackendTool({
    catalog,
    policy: createToolPolicy(policy),
    name: "get_price",
    args: {},
    wait: () => Promise.resolve(),
    ...call,
  });
}

describe("callBackendTool", () => {
  it("returns the answer and passes on what the identity context adds", async () => {
    const { tool, call } = toolThat([{ content: [] }]);
    const reply = await callTool(tool, {
      args: { a: 1 },
      extraArguments: { profile: "p1" },
      headers: { authorization: "Bearer t" },
      meta: { m: 1 },
    });
    expect(reply).toEqual({
      ok: true,
      tool: expect.objectContaining({ name: "get_price", fullName: "market__get_price" }),
      answer: { output: { content: [] }, as: "mcp" },
      warnings: [],
      attempts: 1,
    });
    expect(call.mock.calls[0]![0]).toEqual({ a: 1, profile: "p1" });
    expect(call.mock.calls[0]![1]).toMatchObject({ headers: { authorization: "Bearer t" }, meta: { m: 1 } });
  });

  it.each<[string, Partial<BackendCall>, Partial<BackendTool>, string]>([
    ["an unknown name", { name: "nothing" }, {}, "TOOL_NOT_FOUND"],
    ["a credential, before the policy", { args: { token: "x" } }, { annotations: { destructiveHint: true } }, "CREDENTIAL_ARGUMENT"],
    ["a tool that is not allowed, before the schema", { args: [] }, { annotations: { destructiveHint: true } }, "TOOL_NOT_ALLOWED"],
    [
      "a credential that the tool's own schema asks for",
      { args: { password: "x" } },
      { inputSchema: { properties: { password: { type: "string" } } } },
      "CREDENTIAL_ARGUMENT",
    ],
    ["wrong arguments", { args: { a: 1 } }, { inputSchema: { properties: { a: { type: "string" } } } }, "SCHEMA_TYPE_MISMATCH"],
    ["arguments that are not an object", { args: "a" }, {}, "SCHEMA_TYPE_MISMATCH"],
  ])("refuses %s without calling the tool", async (_, facts, toolFacts, error_code) => {
    const { tool, call } = toolThat([], toolFacts);
    expect(await callTool(tool, facts)).toMatchObject({
      ok: false,
      failure: { kind: "toolError", toolError: { error_code } },
      attempts: 0,
    });
    expect(call).not.toHaveBeenCalled();
  });

  it("asks a person only about a valid call", async () => {
    const { tool, call } = toolThat([{ content: [] }], { annotations: { destructiveHint: true }, inputSchema: { required: ["id"] } });
    const approve = vi.fn<NonNullable<ToolPolicyOptions["approve"]>>(() => Promise.resolve(true));
    expect(await callTool(tool, { args: {} }, { approve })).toMatchObject({ ok: false });
    expect(approve).not.toHaveBeenCalled();
    expect(await callTool(tool, { args: { id: 1 }, extraArguments: { key: "s" } }, { approve })).toMatchObject({ ok: true });
    expect(approve.mock.calls[0]![1]).toEqual({ id: 1 });
    approve.mockResolvedValue(false);
    expect(await callTool(tool, { args: { id: 1 } }, { approve })).toMatchObject({
      failure: { toolError: { error_code: "TOOL_NOT_ALLOWED" } },
    });
    expect(call).toHaveBeenCalledTimes(1);
  });

  it("turns an answer with isError into a failure", async () => {
    const { tool } = toolThat([{ isError: true, content: [{ type: "text", text: "boom" }] }]);
    expect(await callTool(tool)).toMatchObject({ ok: false, failure: { kind: "plain", type: "ToolError", message: "boom" }, attempts: 1 });
  });

  it("removes headers of the identity context that a backend repeats in its error", async () => {
    const headers = { "X-Api-Key": 'k"ey-1234567', Authorization: "Custom opaque-7654321", Accept: "application/json" };
    const text = JSON.stringify({ status: 500, message: 'sent k"ey-1234567 and opaque-7654321 as application/json' });
    const { tool } = toolThat([{ isError: true, content: [{ type: "text", text }] }]);
    expect(await callTool(tool, { headers })).toMatchObject({
      failure: { toolError: { details: [{ upstream_message: "sent [removed] and [removed] as application/json" }] } },
    });
  });

  it("warns about a schema that cannot be used", async () => {
    const { tool } = toolThat([{ content: [] }], { inputSchema: { type: "odd" } });
    expect(await callTool(tool)).toMatchObject({ ok: true, warnings: [expect.stringContaining("were not checked")] });
  });
});

describe("a retry", () => {
  const readOnly = { annotations: { readOnlyHint: true } };

  it("happens for a safe call that may succeed, after the wait that the backend asks for", async () => {
    const { tool, call } = toolThat([httpError(429, { "retry-after": "2" }), { content: [] }], readOnly);
    const waits: number[] = [];
    const wait = (milliseconds: number): Promise<void> => {
      waits.push(milliseconds);
      return Promise.resolve();
    };
    expect(await callTool(tool, { wait })).toMatchObject({ ok: true, attempts: 2 });
    expect(waits).toEqual([2_000]);
    expect(call).toHaveBeenCalledTimes(2);
  });

  it("happens only once", async () => {
    const { tool, call } = toolThat([httpError(503), httpError(503), { content: [] }], { annotations: { idempotentHint: true } });
    expect(await callTool(tool)).toMatchObject({ ok: false, failure: { toolError: { error_code: "UPSTREAM_HTTP_503" } }, attempts: 2 });
    expect(call).toHaveBeenCalledTimes(2);
  });

  it.each<[string, Error, Partial<BackendTool>, Partial<BackendCall>]>([
    ["for a tool that may change something", httpError(503), {}, {}],
    ["for a failure that a retry cannot fix", httpError(404), readOnly, {}],
    ["when the wait would be too long", httpError(429, { "retry-after": "60" }), readOnly, {}],
    ["when maxRetryWaitMs is 0", httpError(503), readOnly, { maxRetryWaitMs: 0 }],
    ["for a plain failure", new Error("boom"), readOnly, {}],
  ])("does not happen %s", async (_, error, facts, call) => {
    const { tool } = toolThat([error, { content: [] }], facts);
    expect(await callTool(tool, call)).toMatchObject({ ok: false, attempts: 1 });
  });
});

describe("the time limit", () => {
  const hanging = (facts: Partial<BackendTool> = {}): BackendTool => sampleTool({ call: () => new Promise(() => {}), ...facts });

  it("applies to a tool that ignores its signal, and is not followed by a retry", async () => {
    expect(await callTool(hanging({ annotations: { readOnlyHint: true } }), { timeoutMs: 20 })).toMatchObject({
      ok: false,
      failure: {
        kind: "toolError",
        toolError: { error_code: "UPSTREAM_HTTP_TIMEOUT", retryable: true, summary: "get_price did not answer within 0.02 s." },
      },
      attempts: 1,
    });
  });

  it("restarts with each progress notification", async () => {
    vi.useFakeTimers();
    try {
      const answer = Promise.withResolvers<ToolAnswer>();
      let report = (): void => {};
      const reported: unknown[] = [];
      const tool = sampleTool({
        call: (_, { onProgress }) => {
          report = () => onProgress?.({ progress: 1 });
          return answer.promise;
        },
      });
      const reply = callTool(tool, { timeoutMs: 100, onProgress: (progress) => reported.push(progress) });
      for (let round = 0; round < 5; round += 1) {
        await vi.advanceTimersByTimeAsync(90);
        report();
      }
      answer.resolve({ output: 1, as: "value" });
      expect(await reply).toMatchObject({ ok: true });
      expect(reported).toHaveLength(5);
    } finally {
      vi.useRealTimers();
    }
  });

  it("ends when the caller aborts: the call rejects with the reason and the tool gets the signal", async () => {
    const abort = new AbortController();
    let abortReason: unknown;
    const tool = hanging({
      call: (_, { signal }) => {
        signal?.addEventListener("abort", () => (abortReason = signal.reason));
        setImmediate(() => abort.abort("enough"));
        return new Promise(() => {});
      },
    });
    await expect(callTool(tool, { signal: abort.signal })).rejects.toBe("enough");
    expect(abortReason).toBe("enough");
  });
});

it("runs no more calls at once than the catalog has slots", async () => {
  let running = 0;
  let most = 0;
  const tool = sampleTool({
    call: async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return { output: 1, as: "value" };
    },
  });
  await using catalog = createToolCatalog({ sources: [sampleSource("market", [tool])], maxConcurrentCalls: 3 });
  const policy = createToolPolicy();
  const replies = await Promise.all(Array.from({ length: 20 }, () => callBackendTool({ catalog, policy, name: "get_price", args: {} })));
  expect(replies.every(({ ok }) => ok)).toBe(true);
  expect(most).toBe(3);
});

describe("createLocalSource", () => {
  const source = createLocalSource([
    {
      name: "add",
      description: "Adds.",
      inputSchema: z.strictObject({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => (a as number) + (b as number),
    },
    { name: "fail", description: "Fails.", execute: () => Promise.reject(new RangeError("too far")) },
  ]);

  it("turns functions into tools, with zod or JSON Schema", async () => {
    await using catalog = createToolCatalog({ sources: [source] });
    const call = (name: string, args: unknown): Promise<BackendReply> =>
      callBackendTool({ catalog, policy: createToolPolicy(), name, args });
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ ok: true, answer: { output: 3, as: "value" } });
    expect(await call("local__add", { a: 1, c: 2 })).toMatchObject({
      ok: false,
      failure: { toolError: { error_code: "INPUT_VALIDATION_FAILED" } },
    });
    expect(await call("fail", {})).toMatchObject({ ok: false, failure: { kind: "plain", type: "RangeError", message: "too far" } });
  });

  it("rejects a schema that JSON Schema cannot express", () => {
    expect(() => createLocalSource([{ name: "x", description: "", inputSchema: z.object({ at: z.date() }), execute: () => null }])).toThrow(
      'The input schema of the local tool "x" cannot be converted to JSON Schema.',
    );
  });
});

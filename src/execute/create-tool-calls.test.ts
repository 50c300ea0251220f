import { describe, expect, it } from "vitest";
import type { CallTool, ToolReply } from "./engine.ts";
import { createToolCalls } from "./create-tool-calls.ts";

function create({ concurrent = 2, toolCalls = 5 }: { concurrent?: number; toolCalls?: number } = {}) {
  const log: string[] = [];
  const open: ((reply: ToolReply) => void)[] = [];
  const signals: AbortSignal[] = [];
  const callTool: CallTool = async ({ name, signal }) => {
    log.push(`call ${name}`);
    signals.push(signal);
    return await new Promise((resolve) => open.push(resolve));
  };
  const calls = createToolCalls({
    callTool,
    limits: { toolCalls, concurrentToolCalls: concurrent },
    onReply: (id, reply) => log.push(`reply ${id} ${String(reply.ok ? reply.json : reply.message)}`),
    onWaiting: (waiting) => log.push(waiting ? "waits" : "runs"),
  });
  const start = (id: number): boolean => calls.start({ id, name: `t${id}`, paramsJson: "{}" });
  const settle = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));
  return { calls, start, open, signals, log, settle };
}

describe("the tool calls of a script", () => {
  it("run up to the limit at once, and the others in order", async () => {
    const { start, open, log, settle } = create();
    for (const id of [0, 1, 2, 3]) start(id);
    expect(log).toEqual(["waits", "call t0", "call t1"]);
    open[1]!({ ok: true, json: "1" });
    await settle();
    expect(log.splice(0)).toEqual(["waits", "call t0", "call t1", "reply 1 1", "call t2"]);
    open[0]!({ ok: false, message: "no" });
    open[2]!({ ok: true, json: "2" });
    await settle();
    expect(log.splice(0)).toEqual(["reply 0 no", "reply 2 2", "call t3"]);
    open[3]!({ ok: true, json: "3" });
    await settle();
    expect(log).toEqual(["reply 3 3", "runs"]);
  });

  it("are counted and named", () => {
    const { calls, start } = create();
    start(0);
    start(1);
    expect([calls.count, calls.nameOf(1), calls.nameOf(7)]).toEqual([2, "t1", undefined]);
  });

  it("are refused when too many are pending", () => {
    const { start, calls } = create({ toolCalls: 5 });
    for (let id = 0; id < 1_005; id += 1) expect(start(id)).toBe(true);
    expect(start(1_005)).toBe(false);
    expect(calls.count).toBe(1_005);
  });

  it("are all abandoned, and reply no more", async () => {
    const { calls, start, open, signals, log, settle } = create();
    for (const id of [0, 1, 2]) start(id);
    const reason = new Error("over");
    calls.abandon(reason);
    expect(signals.map((signal) => signal.reason)).toEqual([reason, reason]);
    for (const answer of open) answer({ ok: true, json: "late" });
    await settle();
    expect(log).toEqual(["waits", "call t0", "call t1"]);
  });

  it("make room for more when pending calls end or are abandoned", async () => {
    const { calls, open, log, settle } = create({ concurrent: 1 });
    const paramsJson = " ".repeat(20 * 1024 * 1024);
    const enter = async (id: number): Promise<void> => {
      calls.start({ id, name: `t${id}`, paramsJson });
      await calls.room();
      log.push(`room after ${id}`);
    };
    await enter(0);
    void enter(1);
    await settle();
    expect(log.splice(0)).toEqual(["waits", "call t0", "room after 0"]);
    open[0]!({ ok: true, json: "0" });
    await settle();
    expect(log.splice(0).sort()).toEqual(["call t1", "reply 0 0", "room after 1"]);
    void enter(2);
    await settle();
    expect(log.splice(0)).toEqual([]);
    calls.abandon(new Error("over"));
    await settle();
    expect(log).toEqual(["room after 2"]);
  });

  it("reply with the error if callTool rejects", async () => {
    const replies: ToolReply[] = [];
    const calls = createToolCalls({
      callTool: async () => {
        throw new TypeError("broken");
      },
      limits: { toolCalls: 5, concurrentToolCalls: 1 },
      onReply: (_, reply) => replies.push(reply),
      onWaiting: () => {},
    });
    calls.start({ id: 0, name: "t", paramsJson: "{}" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(replies).toEqual([{ ok: false, message: "TypeError: broken" }]);
  });
});

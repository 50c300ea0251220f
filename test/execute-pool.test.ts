import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { defaultExecuteLimits, type EngineOutcome, type ExecuteLimits } from "../src/execute/engine.ts";
import { createMontyEngine, type MontyEngine } from "../src/execute/monty/create-monty-engine.ts";

function run(engine: MontyEngine, code: string, limits: Partial<ExecuteLimits> = {}, signal?: AbortSignal): Promise<EngineOutcome> {
  return engine.run({ code, limits: { ...defaultExecuteLimits, ...limits }, callTool: async () => ({ ok: true, json: "null" }), signal });
}

describe("the pool of children", () => {
  it("reuses a child, and replaces it after two hundred scripts", async () => {
    await using engine = createMontyEngine({ poolSize: 1 });
    await engine.warm();
    const [first] = children();
    for (let index = 0; index < 199; index += 1) await run(engine, "1");
    expect(children()).toEqual([first]);
    await run(engine, "1");
    expect(await run(engine, "2")).toMatchObject({ end: { kind: "value", json: "2" } });
    await expect.poll(children).not.toContain(first);
  });

  it("shares nothing between scripts", async () => {
    await using engine = createMontyEngine({ poolSize: 1 });
    await run(engine, "secret = 42\nimport json\njson = None");
    expect((await run(engine, "secret")).end).toMatchObject({ kind: "exception", type: "NameError" });
    expect((await run(engine, "import json\njson.dumps(await call_tool('t'))")).end).toEqual({ kind: "value", json: '"null"' });
  });

  it("runs as many scripts at once as it has children, and queues the others", async () => {
    await using engine = createMontyEngine({ poolSize: 2 });
    const outcomes = await Promise.all(Array.from({ length: 12 }, (_, index) => run(engine, `${index}`)));
    expect(outcomes.map(({ end }) => end)).toEqual(Array.from({ length: 12 }, (_, index) => ({ kind: "value", json: String(index) })));
    expect(children().length).toBeLessThanOrEqual(2);
  });

  it("lets a script leave the queue when it is aborted", async () => {
    await using engine = createMontyEngine({ poolSize: 1 });
    const controller = new AbortController();
    const busy = run(engine, "while True:\n    pass", { executionMs: 800 });
    const queued = run(engine, "1", {}, controller.signal);
    const last = run(engine, "2");
    controller.abort(new Error("changed my mind"));
    await expect(queued).rejects.toThrow("changed my mind");
    expect((await busy).end).toMatchObject({ kind: "limit", limit: "executionMs" });
    expect((await last).end).toEqual({ kind: "value", json: "2" });
  });

  it("starts a child with another memory limit for a script that needs it", async () => {
    await using engine = createMontyEngine({ poolSize: 1 });
    const fill = "x = []\nfor i in range(60):\n    x.append('a' * 1000000)\nlen(x)";
    expect((await run(engine, fill)).end).toEqual({ kind: "value", json: "60" });
    expect((await run(engine, fill, { memoryBytes: 20_000_000 })).end).toMatchObject({
      kind: "limit",
      limit: "memoryBytes",
      allowed: 20_000_000,
    });
    expect((await run(engine, fill)).end).toEqual({ kind: "value", json: "60" });
  });

  it("kills all children when it is closed, also busy ones, and refuses further scripts", async () => {
    const engine = createMontyEngine({ poolSize: 2 });
    await engine.warm();
    const computing = run(engine, "while True:\n    pass");
    const refused = expect(computing).rejects.toThrow("The engine is closed.");
    await new Promise((resolve) => setTimeout(resolve, 100));
    await engine.close();
    await refused;
    await engine.close();
    await expect(run(engine, "1")).rejects.toThrow("The engine is closed.");
    expect(children()).toEqual([]);
  });

  it("refuses to start without namespaces, each time with the reason", async () => {
    await using engine = createMontyEngine({ bwrapPath: "/no/such/bwrap" });
    const refusal = {
      name: "NoSandboxError",
      code: "MONTY_ISOLATION_UNAVAILABLE",
      message: "Monty cannot be isolated in namespaces: the program /no/such/bwrap was not found.",
      hint: expect.stringContaining('isolation: "process-only"') as string,
    };
    await expect(engine.warm()).rejects.toMatchObject(refusal);
    await expect(run(engine, "1")).rejects.toMatchObject(refusal);
  });
});

/** Direct children of this process that the engine started: a shell that became bwrap. */
function children(): number[] {
  return readdirSync("/proc/self/task")
    .flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean))
    .map(Number)
    .filter((pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "bwrap");
}

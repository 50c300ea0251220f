import { describe, expect, test } from "vitest";
import { createRunningTools } from "./running-tools.ts";

describe("running tools", () => {
  test("are awaited, whether they succeed or fail", async () => {
    const running = createRunningTools();
    const over: string[] = [];
    const work = async (name: string, fails: boolean): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      over.push(name);
      if (fails) throw new Error(name);
    };
    const failed = running.track(work("failed", true)).catch(() => {});
    void running.track(work("fine", false));
    await running.settle(10_000);
    await failed;
    expect(over.sort()).toEqual(["failed", "fine"]);
  });

  test("are awaited no longer than they may be", async () => {
    const running = createRunningTools();
    void running.track(new Promise(() => {}));
    const over: string[] = [];
    await Promise.all([
      running.settle(20).then(() => over.push("settled")),
      new Promise((resolve) => setTimeout(resolve, 10)).then(() => over.push("waited")),
    ]);
    expect(over).toEqual(["waited", "settled"]);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allCases } from "../attack/all-cases.ts";
import { openAttackRun, type AttackRun } from "../attack/run-attack.ts";

/** The short form of `npm run attack`: its promises, and none of its times. */
describe("a hostile tenant", { timeout: 240_000 }, () => {
  let run: AttackRun;
  beforeAll(async () => {
    run = await openAttackRun({ driver: "gvisor", seed: 1, isShort: true });
    expect(run.quiet.failures).toEqual([]);
  });
  afterAll(() => run?.[Symbol.asyncDispose]());

  test.each(allCases.map((attackCase) => ({ attackCase, ...attackCase })))(
    "costs its neighbour and the server nothing: $name",
    async ({ attackCase }) => {
      expect((await run.attack(attackCase)).failures).toEqual([]);
    },
  );

  test("leaves no process, sandbox and temporary file behind", async () => {
    expect(await run.end()).toEqual([]);
  });
});

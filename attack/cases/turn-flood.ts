import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { AttackCase } from "../attack-case.ts";
import { cell, type HostileTenant } from "../hostile-tenant.ts";

const KEY = "script-turn-flood";

export const turnFlood: AttackCase = {
  name: "turn-flood",
  what: "more endless turns than may run and wait, which the attacker then stops",
  async run({ hostile, server: { model, limits } }) {
    const calls = [{ tool: "get_prices", input: {} }, cell("while True: pass")];
    await model.setScript(
      KEY,
      calls.map((call) => ({ calls: [call] })),
    );
    const allowed = limits.maxTurnsPerClient + limits.maxQueuedPerClient;
    const all: number[] = [];
    const sent = Array.from({ length: allowed + 4 }, () => startTurn(hostile).then((status) => void all.push(status)));
    while (!all.includes(429)) await sleep(100);
    while ((await stopAll(hostile)) > 0 || all.length < sent.length) await sleep(100);
    await Promise.all(sent);
    assert.deepEqual(
      [...new Set(all)].toSorted((a, b) => a - b),
      [202, 429],
    );
    assert.ok(all.filter((status) => status === 202).length <= allowed + 1, "more turns ran and waited than are allowed");
  },
};

/** Answers when the turn starts. */
async function startTurn({ request }: HostileTenant): Promise<number> {
  const body = JSON.stringify({ question: `Go on without end (${KEY}).` });
  const response = await request("/api/turns", { method: "POST", headers: { "content-type": "application/json" }, body });
  await response.arrayBuffer();
  return response.status;
}

/** Stops the turns that run now. Returns how many there were. */
async function stopAll({ request }: HostileTenant): Promise<number> {
  const { turns } = (await (await request("/api/turns?status=running")).json()) as { turns: { turnId: string }[] };
  for (const { turnId } of turns) await (await request(`/api/turns/${turnId}/stop`, { method: "POST" })).arrayBuffer();
  return turns.length;
}

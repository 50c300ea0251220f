import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";

const ways = ["flood", "strangers", "deep", "deep structure", "many parts", "wide", "huge", "garbage"];

export const hostileBackend: AttackCase = {
  name: "hostile-backend",
  what: "an MCP server that floods, nests deeply, has huge schemas, sends garbage, and mutated answers",
  async run({ hostile, seed, isShort }) {
    const floods = ways.map((how) => ({ tool: "get_lies", input: { how } }));
    const fuzzed = Array.from({ length: isShort ? 6 : 100 }, (_, n) => ({ tool: "get_lies", input: { how: "fuzz", seed, n } }));
    const slow = { tool: "get_slow_pattern", input: { text: `${"a".repeat(40)}!` } };
    const calls = [...(isShort ? floods.slice(0, 6) : floods), slow, ...fuzzed];
    for (let at = 0; at < calls.length; at += 4) {
      const { document } = await hostile.turn(calls.slice(at, at + 4));
      assert.equal(document.status, "ended");
      assert.ok(document.result !== null, "the turn has no result");
    }
  },
};

import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { mutateValues } from "../fuzz/mutate.ts";

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo: { name: "fuzz", version: "1" } },
};
const postProcessingContract = { operation: "other", reason: "To attack.", inputAliases: ["numbers"], expectedArtifacts: [] };
const message = (method: string, params: object): object => ({ jsonrpc: "2.0", id: 7, method, params });
const call = (name: string, args: object): object => message("tools/call", { name, arguments: args });
const messages = [
  initialize,
  message("tools/list", {}),
  message("ping", {}),
  message("resources/list", { cursor: "eyJhIjoxfQ" }),
  message("resources/read", { uri: "sluice://artifacts/none" }),
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7, reason: "no" } },
  call("store_data", { name: "numbers", data: [1, 2, 3] }),
  call("read_data", { alias: "numbers", offset: 0, limit: 10 }),
  call("list_data", {}),
  call("code_interpreter", { code: "1 + ", postProcessingContract }),
  call("render_chart", { spec: { type: "line", xKey: "a", series: [{ key: "b" }] }, alias: "numbers" }),
];

const ANSWER_MS = 60_000;

export const fuzzMcp: AttackCase = {
  name: "fuzz-mcp",
  what: "mutated JSON-RPC messages to /mcp, inside and outside of a session",
  async run({ hostile, seed, isShort }) {
    const post = async (body: unknown, headers: Record<string, string> = {}) => {
      const response = await hostile.request("/mcp", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      return { response, text: await response.text() };
    };
    const { response: begun } = await post(initialize);
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id")!, "mcp-protocol-version": "2025-11-25" };
    for (const [at, mutated] of mutateValues(messages, { seed, count: isShort ? 100 : 2000 }).entries()) {
      const { response, text } = await post(mutated, at % 4 === 0 ? {} : session);
      const sent = JSON.stringify(mutated).slice(0, 1000);
      assert.ok(response.status < 500, `${sent} was answered with ${response.status} ${text.slice(0, 300)}`);
      assert.ok(!text.includes("INTERNAL_ERROR"), `${sent} failed inside of the server: ${text.slice(0, 500)}`);
    }
  },
};

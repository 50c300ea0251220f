import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";

const MB = 1024 * 1024;
const deep = (levels: number): string => `{"question":${"[".repeat(levels)}${"]".repeat(levels)}}`;

const bodies: readonly { readonly what: string; readonly path: string; readonly body: () => string }[] = [
  { what: "deep arrays", path: "/api/turns", body: () => deep(400_000) },
  { what: "deep objects", path: "/api/chat", body: () => `${'{"a":'.repeat(150_000)}1${"}".repeat(150_000)}` },
  {
    what: "100,000 keys",
    path: "/api/turns",
    body: () => JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 1]))),
  },
  { what: "a huge number", path: "/api/turns", body: () => `{"question":${"9".repeat(900_000)}}` },
  { what: "a long question", path: "/api/turns", body: () => JSON.stringify({ question: "a ".repeat(400_000) }) },
  { what: "a body over the limit", path: "/api/turns", body: () => JSON.stringify({ question: "x".repeat(2 * MB) }) },
  { what: "deep JSON-RPC", path: "/mcp", body: () => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${deep(2_000_000)}}` },
  {
    what: "millions of objects",
    path: "/mcp",
    body: () => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${"{},".repeat(5_000_000)}1]}}`,
  },
  { what: "a batch of 100,000", path: "/mcp", body: () => `[${'{"jsonrpc":"2.0","id":1,"method":"ping"},'.repeat(100_000)}1]` },
  {
    what: "a table of wide rows",
    path: "/api/tables.parquet",
    body: () =>
      JSON.stringify({ name: "a", columns: [], rows: [Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, 1]))] }),
  },
];

export const hostileBodies: AttackCase = {
  name: "hostile-bodies",
  what: "JSON bodies that are deep, wide, long or over the limit",
  async run({ hostile }) {
    for (const { what, path, body } of bodies) {
      const response = await hostile.request(path, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: body(),
      });
      const text = await response.text();
      assert.ok(response.status >= 400 && response.status < 500, `${what}: ${response.status} ${text.slice(0, 300)}`);
      assert.ok(text.length < 100_000, `${what}: the refusal has ${text.length} characters`);
    }
  },
};

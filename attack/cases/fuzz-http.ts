import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { mutateValues } from "../fuzz/mutate.ts";

const id = "0e7c9b52-3a39-4a4c-9a52-0b9f0d5e7c11";
const chart = { type: "line", xKey: "a", series: [{ key: "b", label: "B" }] };

/** Valid requests. Their path is fuzzed together with their body. */
const requests = [
  { method: "POST", path: "/api/turns/none/approvals/none", body: { approved: true } },
  { method: "POST", path: "/api/cells", body: { turnId: id, cell: 1, code: "1 + 1" } },
  { method: "POST", path: "/api/tables.parquet", body: { name: "table", columns: ["a", "b"], rows: [{ a: 1, b: "x" }], chart } },
  { method: "PATCH", path: `/api/conversations/${id}`, body: { title: "A title" } },
  { method: "POST", path: "/api/chat", body: { id, messages: [{ role: "user", parts: [{ type: "file", text: "no text" }] }] } },
  { method: "POST", path: "/api/turns", body: { question: "", conversationId: id, timeZone: "Europe/Berlin", wait: false } },
  { method: "POST", path: "/login", body: { code: "a" } },
  { method: "GET", path: `/api/conversations/${id}/aliases/a/rows?filter=[["a","=",1]]&sort=[]&limit=10`, body: null },
  { method: "GET", path: "/api/conversations?q=a&limit=10&before=eyJ", body: null },
  { method: "GET", path: `/artifacts/${"a".repeat(64)}.png?download=1`, body: null },
  { method: "GET", path: `/data/${id}/tables/a.csv`, body: null },
  { method: "DELETE", path: `/api/turns/${id}`, body: null },
];

export const fuzzHttp: AttackCase = {
  name: "fuzz-http",
  what: "mutated bodies, paths and methods of the HTTP API",
  async run({ hostile, seed, isShort }) {
    for (const mutated of mutateValues(requests, { seed, count: isShort ? 150 : 3000 })) {
      const { method, path, body } = toRequest(mutated);
      const response = await hostile.request(path, {
        method,
        headers: { "content-type": "application/json" },
        ...(method === "GET" || body === undefined || body === null ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      assert.ok(
        response.status < 500,
        `${JSON.stringify(mutated).slice(0, 1000)} was answered with ${response.status} ${text.slice(0, 300)}`,
      );
    }
  },
};

/** What of a mutated request can be sent at all. */
function toRequest(mutated: unknown): { method: string; path: string; body: unknown } {
  const { method, path, body } = Object(mutated) as Record<string, unknown>;
  const text = typeof path === "string" ? path : `/${encodeURIComponent(JSON.stringify(path ?? null))}`;
  return {
    method: ["GET", "POST", "PATCH", "DELETE"].find((known) => known === method) ?? "POST",
    path:
      text.startsWith("/") && !text.startsWith("//")
        ? text.slice(0, 10_000)
        : `/api/${encodeURIComponent(text.toWellFormed().slice(0, 2000))}`,
    body,
  };
}

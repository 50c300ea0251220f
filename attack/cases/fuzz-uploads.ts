import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { AttackCase } from "../attack-case.ts";
import { mutateBytes } from "../fuzz/mutate.ts";

const files = [
  { ending: "csv", text: 'day,price,note\n2024-01-01,1.5,"a, ""b"""\n2024-01-02,2.5,=1+1\n' },
  { ending: "csv", text: "tag;preis\n01.02.2024;1.234,50\n02.02.2024;2,5\n" },
  { ending: "tsv", text: "day\tprice\n1\t2\n" },
  { ending: "json", text: '[{"day": 1, "price": 9007199254740993, "tags": ["a"]}, {"day": 2, "price": null}]' },
  { ending: "jsonl", text: '{"day": 1}\n{"day": 2, "more": {"a": [1]}}\n' },
  { ending: "parquet", text: "PAR1\u0015\u0004PAR1" },
  { ending: "xlsx", text: "PK\u0003\u0004\u0014\0\0\0\b\0xl/workbook.xml" },
];

export const fuzzUploads: AttackCase = {
  name: "fuzz-uploads",
  what: "mutated data files",
  async run({ hostile, seed, isShort }) {
    const conversation = randomUUID();
    for (const [at, { ending, text }] of files.entries()) {
      const valid = Buffer.from(text, ending === "parquet" || ending === "xlsx" ? "latin1" : "utf8");
      for (const body of mutateBytes([valid], { seed: seed + at, count: isShort ? 3 : 12 })) {
        const response = await hostile.request(`/api/conversations/${conversation}/files?name=fuzz.${ending}`, {
          method: "POST",
          body: new Uint8Array(body),
        });
        const answer = await response.text();
        const file = `fuzz.${ending} with the base64 ${body.toString("base64").slice(0, 1000)}`;
        assert.ok(response.status < 500, `${file} was answered with ${response.status} ${answer.slice(0, 300)}`);
      }
    }
  },
};

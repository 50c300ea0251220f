import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { forgingPrelude } from "../forging.ts";
import { assertLimit, cell } from "../hostile-tenant.ts";

/** Twenty charts of 5,000 rows, each with a note of this length. */
const charts = (noteCharacters: number, first = 0): string => `${forgingPrelude}
spec = {"type": "line", "xKey": "day", "series": [{"key": "value", "label": "Value"}]}
rows = [{"day": day, "value": day / 7, "note": "x" * ${noteCharacters}} for day in range(5_000)]
for at in range(20):
    rows[0]["value"] = ${first} + at
    data = json.dumps({"spec": spec, "data": rows}).encode()
    for start in range(0, len(data), 700_000): send({"type": "chunk", "of": "data"}, data[start:start + 700_000])
    send({"type": "artifact", "kind": "chart"})
`;

export const largeCharts: AttackCase = {
  name: "large-charts",
  what: "20 charts of 1.9 MB in each of three cells, charts of 3 MB",
  async run({ hostile, isShort }) {
    const cells = Array.from({ length: isShort ? 1 : 3 }, (_, at) => cell(charts(300, 20 * at), ["chart"]));
    const { reasons, document, eventBytes } = await hostile.turn(cells);
    assert.deepEqual(reasons, []);
    assert.equal(document.result?.artifacts.length, 20 * cells.length);
    assert.ok(eventBytes < 1_000_000, `the events hold the data of the charts: they have ${eventBytes} bytes`);
    assertLimit(await hostile.turn([cell(charts(700), ["chart"])]), "artifactDataBytes");
  },
};

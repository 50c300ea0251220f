import type { AttackCase } from "../attack-case.ts";
import { forgingPrelude } from "../forging.ts";
import { assertLimit, cell } from "../hostile-tenant.ts";
import assert from "node:assert/strict";

const artifact = '{"type": "artifact", "kind": "image", "alt": "A line that rises over time"}';
const floods = [
  { limit: "artifactDataBytes", code: `for _ in range(74): send({"type": "chunk", "of": "data"}, bytes(768 << 10))\nsend(${artifact})` },
  { limit: "artifactBytes", code: `for _ in range(74): send({"type": "chunk", "of": "image"}, bytes(768 << 10))\nsend(${artifact})` },
  { limit: "resultBytes", code: `for _ in range(74): send({"type": "chunk", "of": "result"}, bytes(768 << 10))` },
  {
    limit: "cellArtifactBytes",
    code: `for _ in range(20):\n    for _ in range(12): send({"type": "chunk", "of": "image"}, bytes(768 << 10))\n    send(${artifact})`,
  },
  { limit: "more than 20 figures and charts", code: `while True: send(${artifact}, b"{}")` },
] as const;

export const forgedFrames: AttackCase = {
  name: "forged-frames",
  what: "contents of 55 MB in forged chunks, artifacts without end, frames that no worker sends",
  async run({ hostile, isShort }) {
    for (const { limit, code } of isShort ? floods.slice(0, 3) : floods)
      assertLimit(await hostile.turn([cell(forgingPrelude + code, ["image"])]), limit);
    const strange = [
      'channel.sendall(b"\\xff" * 4096)',
      'channel.sendall(struct.pack(">III", 0x534C5501, 10, 1 << 30))',
      'send({"type": "no such frame"})',
      'send({"type": "done", "cell": 10**9, "status": "ok"})',
    ];
    for (const code of isShort ? strange.slice(1, 2) : strange) {
      const { document, eventBytes } = await hostile.turn([cell(forgingPrelude + code), cell("1 + 1")]);
      assert.equal(document.cells.at(-1)?.status, "ok", `${code} cost the next cell`);
      assert.ok(eventBytes < 1_000_000, `${code}: the events have ${eventBytes} bytes`);
    }
  },
};

import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { forgingPrelude } from "../forging.ts";
import { cell } from "../hostile-tenant.ts";

const png = `
import zlib
def part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(width, height, data):
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", head) + part(b"IDAT", data) + part(b"IEND", b"")
def emit(picture):
    for at in range(0, len(picture), 700_000):
        send({"type": "chunk", "of": "image"}, picture[at:at + 700_000])
    send({"type": "artifact", "kind": "image", "alt": "A line that rises over time"})
`;

/** A few kilobytes that unpack to a gigabyte. */
const bomb = `
zeros = zlib.compressobj(9)
data = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(1024)) + zeros.flush()
for _ in range(5): emit(png(16_384, 16_384, data))
`;
/** Valid pictures that take long to decode. */
const large = `
row = b"\\0" + bytes(range(256)) * 100
data = zlib.compress(row * 3000, 1)
for _ in range(COUNT): emit(png(6400, 3000, data))
`;

export const pixelBombs: AttackCase = {
  name: "pixel-bombs",
  what: "19 large pictures in one cell, pictures of a few kilobytes that unpack to a gigabyte",
  async run({ hostile, isShort }) {
    const many = await hostile.turn([cell(forgingPrelude + png + large.replace("COUNT", isShort ? "4" : "19"), ["image"])]);
    assert.deepEqual(many.reasons, []);
    const bombs = await hostile.turn([cell(forgingPrelude + png + bomb, ["image"])]);
    assert.deepEqual(bombs.document.result?.artifacts, [], "a picture was kept that is larger than its limit");
    assert.equal(bombs.reasons.length, 1);
  },
};

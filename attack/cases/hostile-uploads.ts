import assert from "node:assert/strict";
import { connect } from "node:net";
import { randomUUID } from "node:crypto";
import type { AttackCase } from "../attack-case.ts";
import type { HostileRequest, HostileTenant } from "../hostile-tenant.ts";

const MB = 1024 * 1024;

/** Files that are small to send and large to read. */
const bombs: readonly { readonly name: string; readonly text: () => string }[] = [
  { name: "quote.csv", text: () => `a,b\n"${"x\n".repeat(2_000_000)}` },
  { name: "short-rows.csv", text: () => `${"a,".repeat(2_000)}a\n${"1\n".repeat(200_000)}` },
  { name: "deep.json", text: () => "[".repeat(2_000_000) },
  { name: "wide.json", text: () => JSON.stringify([Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`key${at}`, at]))]) },
  { name: "digits.json", text: () => `[{"a":${"9".repeat(4 * MB)}}]` },
  { name: "not.parquet", text: () => `PAR1${"\0".repeat(MB)}PAR1` },
  { name: "not.xlsx", text: () => `PK\u0003\u0004${"\0".repeat(MB)}` },
  // Reading it ends at the time limit of a cell.
  { name: "wide.csv", text: () => `${"a,".repeat(400_000)}a\n${"1,".repeat(400_000)}1\n` },
];

export const hostileUploads: AttackCase = {
  name: "hostile-uploads",
  what: "files that are small to send and large to read, uploads over the limit, uploads that stop",
  async run({ hostile, isShort, server: { limits } }) {
    const sent = bombs.map(({ name, text }) => ({ name, body: text() }));
    for (const { name, body } of isShort ? sent.slice(0, 4) : sent) {
      const status = await upload(hostile, name, body);
      assert.ok(status < 500, `${name} was answered with ${status}`);
    }
    assert.equal(await upload(hostile, "large.csv", Buffer.alloc(limits.uploadBytes + 1, "a,b\n")), 413);
    assert.equal(await uploadWithoutLength(hostile), 413);
    await stopUploads(hostile, isShort ? 20 : 200);
  },
};

async function upload({ request }: HostileTenant, name: string, body: string | Buffer): Promise<number> {
  const response = await request(`/api/conversations/${randomUUID()}/files?name=${name}`, {
    method: "POST",
    body: new Uint8Array(Buffer.from(body)),
  });
  await response.arrayBuffer();
  return response.status;
}

/** The server cannot know the size before it has read it. It may also close the connection. */
async function uploadWithoutLength({ request }: HostileTenant): Promise<number> {
  const piece = Buffer.alloc(MB, "a,b\n");
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(piece) });
  const options = { method: "POST", body, duplex: "half" } as HostileRequest; // the types of Node.js do not know `duplex`
  const response = await request(`/api/conversations/${randomUUID()}/files?name=endless.csv`, options).catch(() => null);
  return response?.status ?? 413;
}

/** Uploads that begin and never end. They hold connections until the attacker hangs up. */
async function stopUploads({ url, headers }: HostileTenant, count: number): Promise<void> {
  const { hostname, port, host } = new URL(url);
  const head = [
    `POST /api/conversations/${randomUUID()}/files?name=slow.csv HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "Content-Length: 1000000",
  ].join("\r\n");
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname));
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.once("error", () => resolve());
          socket.write(`${head}\r\n\r\na,b\n`, () => resolve());
        }),
    ),
  );
  for (const socket of sockets) socket.destroy();
}

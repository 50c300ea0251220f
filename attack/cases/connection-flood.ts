import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { AttackCase } from "../attack-case.ts";

const beginnings = ["", "GET / HTTP/1.1\r\n", `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(200)}`];

export const connectionFlood: AttackCase = {
  name: "connection-flood",
  what: "connections without a token that say nothing, half a request or a long one",
  async run({ hostile, isShort }) {
    const { hostname, port } = new URL(hostile.url);
    const sockets: Socket[] = [];
    try {
      for (let at = 0; at < (isShort ? 150 : 1500); at += 1) {
        const socket = connect(Number(port), hostname);
        socket.on("error", () => {}); // the server may refuse it
        await Promise.race([once(socket, "connect"), once(socket, "close")]);
        socket.write(beginnings[at % beginnings.length]!);
        sockets.push(socket);
      }
      const response = await hostile.request("/api/info");
      await response.arrayBuffer();
      assert.ok([200, 429, 503].includes(response.status), `while connections are held, the server answers ${response.status}`);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  },
};

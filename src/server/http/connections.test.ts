import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Connections, toConnectionLimits } from "./connections.ts";
import { listen } from "./open-server.ts";

let server: Server;
let port: number;
let connections: Connections;
let cut: number;
const clients: Socket[] = [];
beforeEach(async () => {
  cut = 0;
  server = createServer((request, response) => {
    const sent = new Request("http://localhost/");
    connections.register(sent, request.socket);
    const tenant = request.headers["x-tenant"];
    try {
      if (tenant !== undefined) connections.identify(sent, String(tenant));
    } catch (error) {
      response.end((error as Error).message);
      return;
    }
    if (request.url !== "/wait") response.end("ok");
  });
  connections = new Connections(server, { maxStrangers: 3, maxPerTenant: 2 }, () => (cut += 1));
  port = await listen(server, { host: "127.0.0.1", port: 0 });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

interface Client {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  /** Sends a request and resolves with the body of its response. */
  ask(tenant?: string, pathname?: string): Promise<string>;
}

/** Resolves when the server has accepted the connection. */
async function open(): Promise<Client> {
  const accepted = new Promise((resolve) => server.once("connection", resolve));
  const socket = connect(port, "127.0.0.1");
  clients.push(socket);
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.resume();
  await accepted;
  return {
    socket,
    closed,
    ask: (tenant, pathname = "/") =>
      new Promise((resolve) => {
        socket.on("data", (text: Buffer) => resolve(text.toString().split("\r\n\r\n")[1]!));
        socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\n${tenant === undefined ? "" : `X-Tenant: ${tenant}\r\n`}\r\n`);
      }),
  };
}

test("disconnects the strangers that came first, and never a client that is known", async () => {
  const known = await open();
  expect(await known.ask("a")).toBe("ok");
  const first = await open();
  expect(await first.ask()).toBe("ok"); // a request without a token does not make its connection a known one
  const others = [await open(), await open(), await open(), await open()];
  await Promise.all([first.closed, others[0]!.closed]);
  expect([connections.strangers, cut, known.socket.closed]).toEqual([3, 2, false]);
  expect(await others[3]!.ask("b")).toBe("ok");
  expect(connections.strangers).toBe(2);
});

test("disconnects an idle connection of a tenant that has too many, and refuses one more if all are busy", async () => {
  const [one, two, three, other] = [await open(), await open(), await open(), await open()];
  expect([await one.ask("a"), await two.ask("a"), await other.ask("b")]).toEqual(["ok", "ok", "ok"]);
  const occupy = async (client: Client): Promise<void> => {
    const arrived = new Promise((resolve) => server.once("request", resolve));
    void client.ask("a", "/wait");
    await arrived;
  };
  await occupy(two);
  expect(await three.ask("a")).toBe("ok");
  await one.closed;
  await occupy(three);
  const four = await open();
  expect(await four.ask("a")).toBe("This client already has 2 connections with running requests.");
  expect([cut, other.socket.closed]).toEqual([1, false]);
});

test("takes its limits from the number of files that may be open", () => {
  expect([400, 1024, 1_048_576, Number.POSITIVE_INFINITY].map(toConnectionLimits)).toEqual([
    { maxStrangers: 40, maxPerTenant: 100 },
    { maxStrangers: 102, maxPerTenant: 256 },
    { maxStrangers: 1000, maxPerTenant: 262_144 },
    { maxStrangers: 1000, maxPerTenant: Number.POSITIVE_INFINITY },
  ]);
});

import { once } from "node:events";
import { chmod, chown } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { FrameChannel } from "../../contract.ts";
import { createFrameChannel } from "../../frame-channel.ts";

/** The socket to which forks of the zygote call back. Each expected call has a token of its own, which is good once. */
export interface LeaseSocket extends AsyncDisposable {
  expect(lease: string): ExpectedCall;
}

export interface ExpectedCall {
  readonly token: string;
  /** Rejects only by cancel(). */
  readonly channel: Promise<FrameChannel>;
  cancel(reason: Error): void;
}

interface Pending {
  readonly token: Buffer;
  resolve(channel: FrameChannel): void;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

export async function openLeaseSocket({ directory, owner }: { directory: string; owner?: number }): Promise<LeaseSocket> {
  const pending = new Map<string, Pending>();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // seen by whoever reads
    void admit(socket, pending);
  });
  const path = join(directory, "leases.sock");
  await listen(server, path);
  await chmod(path, 0o600);
  if (owner !== undefined) for (const each of [directory, path]) await chown(each, owner, -1);

  return {
    expect(lease) {
      const token = randomBytes(32);
      const { promise, resolve, reject } = Promise.withResolvers<FrameChannel>();
      promise.catch(() => {}); // cancelled before anyone waited
      pending.set(lease, { token, resolve });
      const cancel = (reason: Error): void => {
        pending.delete(lease);
        reject(reason);
      };
      return { token: token.toString("hex"), channel: promise, cancel };
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listen(server: Server, path: string): Promise<void> {
  server.listen({ path, backlog: 1024 });
  await once(server, "listening"); // rejects on "error"
}

/** A call without the right token is not answered. */
async function admit(socket: Socket, pending: Map<string, Pending>): Promise<void> {
  const channel = createFrameChannel({ readable: socket, writable: socket });
  const timer = setTimeout(() => channel.close(), HANDSHAKE_TIMEOUT_MS);
  try {
    const frame = await channel.receive();
    const { type, lease, token }: Record<string, unknown> = frame?.header ?? {};
    const expected = typeof lease === "string" ? pending.get(lease) : undefined;
    if (type !== "lease" || expected === undefined || !isSameToken(expected.token, token)) return channel.close();
    pending.delete(lease as string);
    expected.resolve(channel);
  } catch {
    channel.close();
  } finally {
    clearTimeout(timer);
  }
}

function isSameToken(expected: Buffer, given: unknown): boolean {
  const bytes = Buffer.from(typeof given === "string" ? given : "", "hex");
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}

import { createServer, type AddressInfo } from "node:net";

/** A listener of our own on loopback that counts who reached it. A sandbox must not. */
export async function hostLoopbackPort(): Promise<{ port: number; connections(): number } & AsyncDisposable> {
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => count,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

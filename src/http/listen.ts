import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { UsageError } from "../errors/sluice-error.ts";

export async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(notListening(error, { host, port })));
    server.listen(port, host, resolve);
  });
  server.removeAllListeners("error");
  server.on("clientError", (_error, socket) => socket.destroy());
  return (server.address() as AddressInfo).port;
}

function notListening(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): UsageError {
  const why = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not",
    EADDRNOTAVAIL: "this machine has no such address",
  }[error.code ?? ""];
  return new UsageError({
    code: "NOT_LISTENING",
    message: `The server cannot listen on ${host}:${port}: ${why ?? error.message}.`,
    hint: "Choose another with --port (0 takes any that is free) or --host.",
    cause: error,
  });
}

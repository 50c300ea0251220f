import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { mkdtemp, readFile, rm, writeFile, chmod } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

/** What lies on the host for a sandbox under test to take. None may be reached; the host itself counts who came. */
export interface HostBait extends AsyncDisposable {
  readonly tcpPort: number;
  readonly udpPort: number;
  /** A file that every user of this machine can read. */
  readonly file: string;
  /** The command line of this process, as /proc shows it to who can see it. */
  readonly commandLine: string;
  /** Connections and datagrams that arrived. */
  arrived(): number;
}

export async function openHostBait(): Promise<HostBait> {
  let arrived = 0;
  const tcp = createServer((socket) => {
    arrived += 1;
    socket.destroy();
  });
  const udp = createSocket("udp4", () => {
    arrived += 1;
  });
  await new Promise<void>((resolve, reject) => tcp.once("error", reject).listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve, reject) => udp.once("error", reject).bind(0, "127.0.0.1", resolve));
  const directory = await mkdtemp(path.join(tmpdir(), "sluice-bait-"));
  await chmod(directory, 0o755);
  const file = path.join(directory, "secret");
  await writeFile(file, randomBytes(16).toString("hex"), { mode: 0o644 });
  return {
    tcpPort: (tcp.address() as AddressInfo).port,
    udpPort: udp.address().port,
    file,
    commandLine: await readFile("/proc/self/cmdline", "utf8"),
    arrived: () => arrived,
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => tcp.close(() => resolve()));
      await new Promise<void>((resolve) => udp.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

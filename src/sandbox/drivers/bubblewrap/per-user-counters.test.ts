import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { listProcessTree } from "../../../processes.ts";
import type { Lease } from "../../contract.ts";
import { withLimits } from "../../limits.ts";
import { ask, openTestDriver, type TestDriver } from "./fixtures/test-driver.ts";

/**
 * The kernel counts some resources per user of the host: descriptors in flight, queued signals, pages in pipes. An attacker that uses up all that its
 * sandbox allows must not take anything away from its neighbours.
 */
const isRoot = process.getuid?.() === 0;
let host: TestDriver;

beforeAll(async () => {
  host = await openTestDriver();
  await host.driver.prepare({ snapshot: host.snapshot });
}, 180_000);
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
});

async function open(): Promise<Lease> {
  const lease = await host.open();
  onTestFinished(() => lease.close());
  return lease;
}

/** Attacks that hold what they have taken until their sandbox ends. `answer` is how much that is. */
const attacks: Record<string, string> = {
  "1,200 descriptors in flight over socketpairs": `
import array, os, socket
null, pairs, answer = os.open("/dev/null", os.O_RDONLY), [], 0
try:
    while answer < 1200:
        pairs.append(socket.socketpair())
        pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 200))])
        answer += 200
except OSError:
    pass`,
  "queued signals": `
import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
libc, answer = ctypes.CDLL(None), 0
while answer < 300_000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
    answer += 1`,
  "pages of pipes": `
import os, signal
taken_read, taken_write = os.pipe()
for _ in range(24):
    if os.fork() == 0:
        held = []
        try:
            while True:
                held.append(os.pipe())
        except OSError:
            for descriptor in held[-1]:
                os.close(descriptor)
        os.write(taken_write, len(held).to_bytes(4))
        signal.pause()
answer = sum(int.from_bytes(os.read(taken_read, 4)) for _ in range(24))`,
};

/** Uses each of these resources in the way that the worker and ordinary code do. */
const ordinaryWork = `
import asyncio, array, ctypes, os, signal, socket, subprocess
left, right = socket.socketpair()
try:
    left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 0]))])
    received = len(socket.recv_fds(right, 1, 2)[1])
except OSError as error:
    received = error.errno
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
queued = ctypes.CDLL(None).sigqueue(os.getpid(), signal.SIGRTMIN, None)
signal.sigwait([signal.SIGRTMIN])
reader, writer = os.pipe()
os.set_blocking(writer, False)
try:
    room = sum(os.write(writer, bytes(4096)) for _ in range(16))
except BlockingIOError:
    room = "a smaller pipe"
async def child():
    process = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()
answer = [received, queued, room, asyncio.run(child()), subprocess.run(["/bin/echo", "ho"], capture_output=True, text=True).stdout]`;
/** With an ordinary user, all sandboxes share these counts: some of what code does itself is refused or smaller, but nothing that the worker needs. */
const ETOOMANYREFS = 109;
const expected: Record<string, unknown[]> = {
  "1,200 descriptors in flight over socketpairs": [isRoot ? 2 : ETOOMANYREFS, 0, 65_536, "hi\n", "ho\n"],
  "queued signals": [2, 0, 65_536, "hi\n", "ho\n"],
  "pages of pipes": [2, 0, isRoot ? 65_536 : "a smaller pipe", "hi\n", "ho\n"],
};

describe("one sandbox cannot use up what the kernel counts per user", () => {
  it.each(Object.keys(attacks))("%s: a neighbour and a new sandbox still work", async (name) => {
    const [attacker, neighbour] = [await open(), await open()];
    await ask(neighbour, "import threading; answer = 1");
    expect(await holdAttack(attacker, attacks[name]!)).toBeGreaterThan(16);
    for (const lease of [neighbour, await open()]) {
      await lease.channel.send({ type: "input", alias: "sent", format: "json" }, Buffer.from("[1, 2]"));
      expect((await lease.channel.receive())?.header).toEqual({ type: "input-ok", alias: "sent" });
      expect(await ask(lease, ordinaryWork)).toEqual(expected[name]);
    }
  });

  if (!isRoot) return; // an ordinary user has only one uid

  it("every live sandbox has a uid and gid of its own that no other process has", async () => {
    const leases = [await open(), await open(), await open()];
    const ids = await listSandboxIds();
    expect(new Set(ids).size).toBe(leases.length);
    for (const id of ids) expect(id).toBeGreaterThanOrEqual(2 ** 31);
    await leases[0]!.close();
    const replaced = await open();
    expect(await ask(replaced, "import os; answer = [os.getuid(), os.getgid(), os.stat('/sandbox').st_uid]")).toEqual([1000, 1000, 1000]);
    const later = await listSandboxIds();
    expect(new Set(later).size).toBe(leases.length);
    expect(
      later.filter((id) => !ids.includes(id)),
      "a released id is not used again at once",
    ).toHaveLength(1);
  });
});

/** Runs an attack in a cell that does not end, and returns how much it holds. */
async function holdAttack(lease: Lease, code: string): Promise<number> {
  const cell = `${code}\nimport os, signal\nos.write(1, b"%d\\n" % answer)\nwhile True:\n    signal.pause()`;
  const limits = { ...withLimits({ artifacts: 1 }), turnArtifactBytesUsed: 0 };
  await lease.channel.send({ type: "cell", cell: 1, rollback: "fork", names: {}, limits }, Buffer.from(cell));
  const frame = await lease.channel.receive();
  expect(frame?.header).toMatchObject({ type: "output", stream: "stdout" });
  return Number(Buffer.from(frame!.body).toString());
}

/** The uids of the first processes of all sandboxes. Every process of a sandbox must have the same uid and gid. */
async function listSandboxIds(): Promise<number[]> {
  const bwrap = listChildren(process.pid).find((pid) => readFileSync(`/proc/${pid}/comm`, "latin1").trim() === "bwrap")!;
  const inits = listChildren(listChildren(bwrap)[0]!);
  return await Promise.all(
    inits.map(async (init) => {
      const statuses = (await listProcessTree([init])).map((pid) => readFileSync(`/proc/${pid}/status`, "latin1"));
      const ids = statuses.flatMap((status) =>
        [...status.matchAll(/^[UG]id:\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)/gm)].flatMap((line) => line.slice(1)),
      );
      expect(new Set(ids).size).toBe(1);
      return Number(ids[0]);
    }),
  );
}

function listChildren(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").filter(Boolean).map(Number);
}

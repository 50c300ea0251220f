import assert from "node:assert/strict";
import type { AttackCase } from "../attack-case.ts";
import { cell, type HostileTenant } from "../hostile-tenant.ts";

interface GreedyCell {
  readonly what: string;
  readonly code: string;
  /** How the cell ends; null when that depends on how fast the machine is. */
  readonly ends: "ok" | "error" | null;
}

const attacks: readonly GreedyCell[] = [
  { what: "time", ends: "error", code: "while True: pass" },
  { what: "memory", ends: "error", code: "hog = []\nwhile True: hog.append(bytearray(b'x' * (16 << 20)))" },
  { what: "output", ends: "ok", code: "line = 'x' * 1000\nfor _ in range(20_000): print(line)" },
  {
    what: "processes",
    ends: null,
    code: `
import os, time
for _ in range(100):
    try:
        if os.fork() == 0: time.sleep(600)
    except OSError: break
`,
  },
  {
    what: "zombies",
    ends: null,
    code: `
import os
for _ in range(60):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: break
`,
  },
  { what: "scratch", ends: "error", code: "with open('full', 'wb') as file:\n    while True: file.write(bytes(1 << 20))" },
  {
    what: "descriptors",
    ends: null,
    code: `
import array, socket
pairs = [socket.socketpair() for _ in range(100)]
for one, _ in pairs:
    one.setblocking(False)
    for _ in range(12):
        try: one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
        except OSError: break
`,
  },
];

/** Within the limit of a tenant's turns at once. */
const AT_ONCE = 3;

export const greedyCells: AttackCase = {
  name: "greedy-cells",
  what: "memory, output, processes, zombies, scratch files, descriptors in flight and time without end, three cells at once",
  async run({ hostile }) {
    const waiting = attacks.values();
    const attackOn = async (): Promise<void> => {
      for (const attack of waiting) await runGreedyCell(hostile, attack);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, attackOn));
  },
};

async function runGreedyCell(hostile: HostileTenant, { what, code, ends }: GreedyCell): Promise<void> {
  const { document, reasons, eventBytes } = await hostile.turn([cell(code), cell("1 + 1")]);
  const [attack, next] = document.cells.map(({ status }) => status);
  assert.equal(next, "ok", `${what} cost the next cell: ${JSON.stringify(reasons)}`);
  if (ends !== null) assert.equal(attack, ends, `${what}: ${JSON.stringify(reasons)}`);
  assert.ok(eventBytes < 8 * 1024 * 1024, `${what}: the events have ${eventBytes} bytes`);
}

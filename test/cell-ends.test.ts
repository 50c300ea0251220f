import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../src/create-runtime.ts";
import type { CellRequest, CellSession } from "../src/cells/open-cell-session.ts";
import { withLimits } from "../src/sandbox/limits.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

const MB = 1024 * 1024;
const limits = withLimits({
  cellTimeoutMs: 3_000,
  memoryBytes: 512 * MB,
  processes: 8,
  openFiles: 128,
  scratchBytes: 32 * MB, // as in the other tests, because each size needs its own memory image
  resultBytes: 1000,
  artifacts: 1,
  artifactBytes: 4000,
});

/**
 * Runs first in every cell, so that there is something to measure: it takes 64 MB and does a fixed amount of work. It does not wait for a fixed time,
 * because clocks inside gVisor go on while a busy machine does not schedule the sandbox.
 */
const work = `
import os, signal, time
held = np.ones(8 * 1024 * 1024)
digits = 0
for number in range(2_000_000):
    digits += len(str(number))
kept = "changed"
`;
const figure = "fig, ax = plt.subplots()\nax.plot([1, 2], [3, 4])\nsave_figure('a line that rises from three to four', fig=fig)\n";

interface End {
  readonly code: string;
  readonly expect?: CellRequest["expect"];
  readonly status: string;
  readonly error: Record<string, unknown>;
  readonly exitCode?: number;
}

const hit = (name: keyof typeof limits, seen: unknown = limits[name]): Record<string, unknown> => ({ name, allowed: limits[name], seen });
const crashed = (how: string): Record<string, unknown> => ({
  type: "Crashed",
  message: `The process that ran the cell ${how}. Variables are as they were before the cell.`,
});

const ends: Record<string, End> = {
  "an exception": {
    code: "1 / 0",
    status: "python_error",
    error: { type: "ZeroDivisionError", message: "division by zero", line: 8, traceback: expect.stringContaining("line 8, in <module>") },
  },
  SystemExit: {
    code: "raise SystemExit(3)",
    status: "python_error",
    error: { type: "SystemExit", message: "the code called exit(3); a cell ends after its last line and needs no exit", line: 8 },
  },
  KeyboardInterrupt: { code: "raise KeyboardInterrupt", status: "python_error", error: { type: "KeyboardInterrupt", line: 8 } },
  "its time limit": {
    code: "while True: pass",
    status: "timeout",
    error: {
      type: "Timeout",
      message: "The cell exceeded its time limit of 3 s and was stopped. Compute less, vectorise loops, or work on an aggregate.",
      limit: hit("cellTimeoutMs", expect.any(Number)),
    },
  },
  "a MemoryError": {
    code: "np.ones(1 << 40)",
    status: "out_of_memory",
    error: { type: "_ArrayMemoryError", line: 8, limit: hit("memoryBytes", expect.any(Number)) },
  },
  "being killed for memory": {
    code: "more = []\nwhile True: more.append(bytearray(4 << 20))",
    status: "out_of_memory",
    error: { limit: hit("memoryBytes", expect.any(Number)) },
  },
  "a result that is too large": {
    code: "set_result('x' * 2000)",
    status: "output_limit",
    error: { type: "OutputLimitError", line: 8, limit: hit("resultBytes", 2002) },
  },
  "too many artifacts": {
    code: figure.replace("()", "(figsize=(0.5, 0.5))").repeat(2),
    status: "output_limit",
    error: { type: "OutputLimitError", limit: hit("artifacts", 2) },
  },
  "an artifact that is too large": {
    code: figure,
    status: "output_limit",
    error: { type: "OutputLimitError", limit: hit("artifactBytes", expect.any(Number)) },
  },
  "a signal": {
    code: "os.kill(os.getpid(), signal.SIGSEGV)",
    status: "crashed",
    error: crashed("was killed by SIGSEGV (signal 11)"),
    exitCode: 139,
  },
  "os.abort": { code: "os.abort()", status: "crashed", error: crashed("was killed by SIGABRT (signal 6)"), exitCode: 134 },
  "os._exit": {
    code: "os._exit(7)",
    status: "crashed",
    error: crashed("exited with status 7 (os._exit, or its channel was closed)"),
    exitCode: 7,
  },
  "not emitting what was declared": {
    code: "1",
    expect: ["image"],
    status: "contract_violation",
    error: { type: "ArtifactsNotAsDeclared", message: "the call declared image and emitted no artifact. Call save_figure(alt)." },
  },
  "the loss of its sandbox": {
    code: "import socket, stat\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'no frame' * 4) if stat.S_ISSOCK(os.fstat(fd).st_mode) else None\n    except OSError:\n        pass\ntime.sleep(30)",
    status: "sandbox_lost",
    error: { type: "SandboxLost", message: expect.stringMatching(/^The sandbox is gone: /) },
  },
  "full scratch space": {
    code: "with open('/sandbox/x', 'wb', buffering=0) as file:\n    for _ in range(64): file.write(bytes(1 << 20))",
    status: "python_error",
    error: { type: "OSError", message: expect.stringMatching(/^\[Errno 2[78]\] /), limit: hit("scratchBytes") },
  },
  "too many open files": {
    code: "files = [open('/dev/null') for _ in range(500)]",
    status: "python_error",
    error: { type: "OSError", message: "[Errno 24] Too many open files: '/dev/null'", limit: hit("openFiles") },
  },
  "too many threads": {
    code: "import threading\nend = threading.Event()\nfor _ in range(100): threading.Thread(target=end.wait, daemon=True).start()",
    status: "python_error",
    error: { type: "RuntimeError", message: "can't start new thread", limit: hit("processes") },
  },
  "too many processes": {
    code: "del held\nwhile True:\n    if os.fork() == 0: signal.pause()",
    status: "python_error",
    error: { type: "BlockingIOError", message: "[Errno 11] Resource temporarily unavailable", limit: hit("processes") },
  },
};

/** Every way in which a cell can end, as the host distinguishes and measures it, with the exceeded limit. */
describe.each(testedDrivers)("the end of a cell on %s", (driver) => {
  let runtime: Runtime;
  let session: CellSession;
  beforeAll(async () => {
    runtime = openTestRuntime(driver, { limits });
    session = await runtime.openCellSession({ limits: { ...limits, cellTimeoutMs: 30_000 } });
    await session.run({ code: "kept = 5" });
  }, 180_000);
  afterAll(async () => await runtime.close(), 60_000);

  async function expectEnd(name: string, on: CellSession): Promise<void> {
    const { code, expect: declared, status, error, exitCode } = ends[name]!;
    const outcome = await on.run({ code: `${work}${code}`, ...(declared && { expect: declared }) });
    expect(outcome).toMatchObject({ status, error, resultJson: null, artifacts: [] });
    expect(outcome.error?.limit).toEqual(error["limit"]);
    if (exitCode !== undefined) expect(outcome.exitCode).toBe(exitCode);
    expect(outcome.usage.peakMemoryBytes).toBeGreaterThan(64 * MB);
    expect(outcome.usage.cpuMs).toBeGreaterThan(50);
    expect(outcome.timing.runMs).toBeGreaterThan(50);
    expect(await on.run({ code: "kept", isQuery: true })).toMatchObject({ status: "ok", resultJson: "5" });
  }

  const withOwnSession = ["its time limit", "the loss of its sandbox"];
  test.each(Object.keys(ends).filter((name) => !withOwnSession.includes(name)))(
    "by %s is reported and measured, and earlier variables are intact",
    async (name) => await expectEnd(name, session),
    60_000,
  );

  test.each(withOwnSession)(
    "by %s is reported and measured, and earlier variables are intact",
    async (name) => {
      await using own = await runtime.openCellSession();
      await own.run({ code: "kept = 5" });
      await expectEnd(name, own);
    },
    60_000,
  );

  test("a child process that was killed for memory is reported, although the cell went on", async () => {
    const outcome = await session.run({
      code: "import os\nchild = os.fork()\nif child == 0:\n    held = []\n    while True: held.append(bytearray(4 << 20))\nos.waitstatus_to_exitcode(os.waitpid(child, 0)[1])",
    });
    // The host kernel kills the largest process. gVisor is one process to it, so the whole sandbox is killed.
    if (driver === "gvisor") expect(outcome).toMatchObject({ status: "out_of_memory", error: { limit: { name: "memoryBytes" } } });
    else expect(outcome).toMatchObject({ status: "ok", resultJson: "-9", diagnostics: { killedForMemory: 1 } });
  }, 60_000);
});

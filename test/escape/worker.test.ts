import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Runtime } from "../../src/create-runtime.ts";
import { openTestRuntime, testedDrivers } from "../test-runtime.ts";
import { openAttackedCellSession, type AttackedCellSession } from "./attacked-cell-session.ts";
import { forgeFrames } from "./forge-frames.ts";
import { openHostTraps, untouched, type HostTraps } from "./host-traps.ts";

/** The monitor, the process with the variables, the one before it, the one for the next cell, and one that is exiting. */
const OWN_PROCESSES = 5;

/** Does not count zombies, because a cell may have children that it never waited for. */
const countProcesses = `
import os
alive = 0
for name in os.listdir("/proc"):
    try:
        alive += name.isdigit() and open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        pass
alive
`;

/** Escape tests: attacks on the worker itself. Cells of one cell session trust each other; the host trusts none of them. */
describe.each(testedDrivers)("%s", (driver) => {
  let traps: HostTraps;
  let runtime: Runtime;
  let cellSession: AttackedCellSession;

  beforeAll(async () => {
    traps = await openHostTraps();
    runtime = openTestRuntime(driver);
    cellSession = await openAttackedCellSession(runtime, traps, { cellTimeoutMs: 4_000 });
  }, 120_000);

  afterAll(async () => {
    expect(traps.reached()).toEqual(untouched);
    await runtime?.close();
    await traps?.[Symbol.asyncDispose]();
  }, 30_000);

  const made = `{"type": "done", "cell": current_cell(), "status": "ok", "diagnostics": {"forged": True}}`;
  const forgeries: Record<string, string> = {
    "the answer of a cell that runs on": `send(frame(${made}, b'"forged"'))\nwhile True:\n    pass`,
    "two answers": `send(frame(${made}, b'"forged"') * 2)`,
    "the answer of another cell": `send(frame({"type": "done", "cell": 4242, "status": "ok", "diagnostics": {}}, b"1"))`,
    "the answer of the next cell": `send(frame(${made}, b"1") + frame({**${made}, "cell": current_cell() + 1}, b'"forged"'))`,
    "an answer of an unknown status": `send(frame({**${made}, "status": "fine"}))`,
    "an answer that is not JSON": `send(frame(${made}, b"{not json"))`,
    "an answer with odd fields": `send(frame({**${made}, "threads": "many", "error": 7}))`,
    "an artifact of another cell": `send(frame({"type": "artifact", "cell": 4242, "kind": "image", "alt": "a line"}, b"x"))`,
    "an artifact of an unknown kind": `send(frame({"type": "artifact", "cell": current_cell(), "kind": "program", "path": "/etc/cron.d/x"}, b"x"))`,
    "an artifact that is not a picture": `send(frame({"type": "artifact", "cell": current_cell(), "kind": "image", "alt": "a line"}, b"<script>"))`,
    readiness: `send(frame({"type": "ready", "nonce": "0", "python": "3.13"}))`,
    "an import": `send(frame({"type": "imported"}))`,
    warmth: `send(frame({"type": "warmed"}))`,
    "an input": `send(frame({"type": "input-ok", "alias": "x"}))`,
    "a spawned process": `send(frame({"type": "spawned", "pid": 1}))`,
    "the spawning of every process": `send(frame({"type": "spawned", "pid": -1}))`,
    "an exit": `send(frame({"type": "exited", "pid": os.getpid(), "exitCode": 0}))`,
    "the end of the cell": `send(frame({"type": "ended", "cell": current_cell(), "signal": 9}))`,
    "the end of the cell, then an endless loop": `send(frame({"type": "ended", "cell": current_cell(), "exitCode": 0}))\nwhile True:\n    pass`,
    "the loss of the sandbox": `send(frame({"type": "lost", "detail": "so it says"}))`,
    output: `send(frame({"type": "output", "cell": current_cell(), "stream": "stdout"}, b"forged"))`,
    "a tool call": `send(frame({"type": "call_tool", "cell": current_cell(), "name": "shell", "arguments": {"command": "id"}}))`,
    "a cell": `send(frame({"type": "cell", "cell": 1, "rollback": "none", "limits": {}}, b"1"))`,
    garbage: `send(b"\\xff" * 100_000)`,
    "a frame without a type": `send(frame({}))`,
    "a list for a header": `send(frame([1, 2]))`,
    "a header that is not JSON": `send(struct.pack(">III", 0x534C5501, 3, 0) + b"{{{")`,
    "a deeply nested header": `send(struct.pack(">III", 0x534C5501, 200_000, 0) + b"[" * 200_000)`,
    "a frame of four gigabytes": `send(struct.pack(">III", 0x534C5501, 0xFFFFFFFF, 0xFFFFFFFF))`,
    "a frame of 55 MB": `send(frame({"type": "artifact", "cell": current_cell(), "kind": "image", "alt": "a line that rises"}, bytes(55_000_000)))`,
    "a chunk of an unknown content": `send(frame({"type": "chunk", "of": "program"}, b"x"))`,
    "a chunk that nothing takes": `send(frame({"type": "chunk", "of": "image"}, b"x"))`,
    "a chunk before a made answer": `send(frame({"type": "chunk", "of": "result"}, b'"for') + frame(${made}, b'ged"'))`,
    "half a frame": `send(frame(${made})[:-3])`,
  };
  it.each(Object.keys(forgeries))(
    "fake frames: %s is never accepted as a frame of the worker",
    async (name) => {
      const outcome = await cellSession.run(`${forgeFrames}\n${forgeries[name]}`);
      // A cell may forge its own answer, but not that of another cell or of the monitor.
      expect(["ok", "sandbox_lost", "contract_violation", "timeout"]).toContain(outcome.status);
      if (outcome.status === "ok") expect([null, '"forged"', "1"]).toContain(outcome.resultJson);
      expect(outcome.artifacts).toEqual([]);
      expect(outcome.stdout).toBe("");
      await cellSession.expectTruthful();
    },
    60_000,
  );

  it("a forged end is not reported as a crash with variables intact", async () => {
    const outcome = await cellSession.run(
      `${forgeFrames}\nsend(frame({"type": "ended", "cell": current_cell(), "signal": 11}))\nkept = "changed"`,
    );
    expect(outcome.status).toBe("sandbox_lost");
    await cellSession.expectTruthful();
  }, 60_000);

  const misuses: Record<string, string> = {
    "closes every descriptor": "import os\nos.closerange(0, 4096)",
    "closes its connection and goes on": `${forgeFrames}\nos.close(own_socket())\nwhile True:\n    pass`,
    "shuts its connection down for reading": `${forgeFrames}\nsocket.socket(fileno=os.dup(own_socket())).shutdown(socket.SHUT_RD)`,
    "shuts its connection down both ways": `${forgeFrames}\nsocket.socket(fileno=os.dup(own_socket())).shutdown(socket.SHUT_RDWR)`,
    "replaces its connection by another": `${forgeFrames}\na, b = socket.socketpair()\nos.dup2(a.fileno(), own_socket())\n`,
    "writes to every descriptor":
      "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'escaped' * 100)\n    except OSError:\n        pass",
    "reads what is meant for the worker": `${forgeFrames}\nchannel = socket.socket(fileno=os.dup(own_socket()))\nchannel.setblocking(False)\ntry:\n    print(channel.recv(100))\nexcept BlockingIOError:\n    pass`,
    "closes standard output": "import sys\nsys.stdout.close()\nsys.stderr.close()",
    "closes the pipes under standard output": "import os\nos.close(1)\nos.close(2)",
    "gives its standard output away": "import sys\nsys.stdout = sys.stderr = None",
    "fills its own connection's buffer": `${forgeFrames}\nchannel = socket.socket(fileno=os.dup(own_socket()))\nchannel.setblocking(False)\nhead = frame({"type": "artifact", "cell": 0, "kind": "image"}, b"x" * 100_000)\nfor _ in range(50):\n    try:\n        channel.send(head)\n    except OSError:\n        break`,
  };
  it.each(Object.keys(misuses))(
    "a cell that %s harms only itself",
    async (name) => {
      const outcome = await cellSession.run(misuses[name]!);
      expect(["ok", "crashed", "python_error", "sandbox_lost", "timeout"]).toContain(outcome.status);
      expect(outcome.artifacts).toEqual([]);
      await cellSession.expectTruthful();
      await cellSession.expectTruthful();
    },
    60_000,
  );

  const killings: Record<string, string> = {
    "its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True:\n    pass",
    "its parent, gently, and goes on": "import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\n'went on'",
    "its parent by stopping it": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n'went on'",
    "process 1":
      "import os, signal\nfor number in range(1, 65):\n    try:\n        os.kill(1, number)\n    except OSError:\n        pass\n'went on'",
    everything:
      "import os, signal\ntry:\n    os.kill(-1, signal.SIGKILL)\nexcept ProcessLookupError:\n    pass  # there was nothing else\n'went on'",
    "its group": "import os, signal\nos.killpg(0, signal.SIGKILL)",
    itself: "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "itself by stopping": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "process 1 with a storm of signals":
      "import os, signal\nfor _ in range(20_000):\n    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGUSR1):\n        try:\n            os.kill(1, number)\n        except OSError:\n            pass\n'went on'",
    "process 1 by its limits":
      "import resource\nfor which in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):\n    try:\n        resource.prlimit(1, which, (1, 1))\n    except OSError:\n        pass\n'went on'",
    "a parent that adopts":
      "import ctypes, os\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nctypes.CDLL(None).prctl(1, 9, 0, 0, 0)\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True:\n            pass\n    os._exit(0)\n'went on'",
  };
  it.each(Object.keys(killings))(
    "a cell that kills %s ends itself or the sandbox, and the outcome reports it",
    async (name) => {
      const outcome = await cellSession.run(killings[name]!);
      expect(["ok", "crashed", "sandbox_lost", "timeout"]).toContain(outcome.status);
      if (outcome.status === "ok") expect(outcome.resultJson).toBe('"went on"');
      expect(traps.process.isAlive()).toBe(true);
      await cellSession.expectTruthful();
      await cellSession.expectTruthful();
    },
    60_000,
  );

  it("variables that were replayed after a loss also survive a failed cell", async () => {
    await using own = await openAttackedCellSession(runtime, traps);
    const lost = await own.run(`${forgeFrames}\nsend(b"\\xff" * 100)`);
    expect(lost.status).toBe("sandbox_lost");
    const failed = await own.run("kept = 'changed'\n1 / 0");
    expect(failed.status).toBe("python_error");
    expect(failed.diagnostics.sandboxReplaced).toMatchObject({ variables: "replayed" });
    await own.expectTruthful();
    await own.expectTruthful();
  }, 60_000);

  it("a cell session whose own cells kill every new sandbox reports it once and continues without variables", async () => {
    await using own = await openAttackedCellSession(runtime, traps);
    const killer = "import os, signal\nif os.fork() == 0:\n    pass"; // not replayed: it forks
    expect(killer).toContain("fork");
    const bomb = await own.run(
      "import _thread, ctypes\n_thread.start_new_thread(lambda: ([None for _ in range(10_000_000)], ctypes.CDLL(None).kill(-1, 9), ctypes.CDLL(None).kill(1, 9), ctypes.string_at(0)), ())",
    );
    expect(["ok", "sandbox_lost", "crashed"]).toContain(bomb.status);
    for (let tries = 0; tries < 4; tries += 1) await own.run("globals().get('kept', 'gone')");
    await own.expectTruthful();
  }, 60_000);

  it("a process that a cell leaves behind, daemon or not, is killed and reported", async () => {
    await using own = await openAttackedCellSession(runtime, traps, { cellTimeoutMs: 30_000 });
    const outcome = await own.run(`
import os, signal, subprocess, sys
read, write = os.pipe()
for _ in range(3):
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.write(write, b"x")
            while True:
                pass
        os._exit(0)
    os.waitpid(child, 0)
left = subprocess.Popen([sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"], stdout=subprocess.PIPE)
left.stdout.readline()
got = b""
while len(got) < 3:
    got += os.read(read, 3)
`);
    expect(outcome.error).toBeUndefined();
    expect(outcome.diagnostics.leftBehind).toMatchObject({ processes: 4 });
    const seen = await own.run(countProcesses);
    expect(Number(seen.resultJson)).toBeLessThanOrEqual(OWN_PROCESSES);
    await own.expectTruthful();
  }, 60_000);

  const lingering: Record<string, string> = {
    "a thread": "threading.Thread(target=linger, daemon=True).start()",
    "a thread that Python does not list": "import _thread\n_thread.start_new_thread(linger, ())",
  };
  it.each(Object.keys(lingering))(
    "%s that a cell leaves behind does not disturb the next cell",
    async (name) => {
      await using own = await openAttackedCellSession(runtime, traps, { cellTimeoutMs: 30_000 });
      const outcome = await own.run(`
import threading
ticks, started = [0], threading.Event()
def linger():
    while True:
        ticks[0] += 1
        started.set()
${lingering[name]}
started.wait()
ticks[0] > 0
`);
      expect([outcome.error, outcome.resultJson]).toEqual([undefined, "true"]);
      if (name === "a thread") expect(outcome.diagnostics.leftBehind).toMatchObject({ threads: 1 });
      const next = await own.run("before = ticks[0]\ntotal = sum(range(3_000_000))\n[total, ticks[0] - before]");
      expect(next.error).toBeUndefined();
      const [total, went] = JSON.parse(next.resultJson!) as [number, number];
      expect(total).toBe(4499998500000);
      if (name === "a thread" || driver === "bubblewrap") expect(went).toBe(0);
      await own.expectTruthful();
    },
    60_000,
  );

  it("a thread that keeps forging frames after its cell cannot answer for the next cell", async () => {
    const outcome = await cellSession.run(`${forgeFrames}
import threading
cell = current_cell()
def later():
    while True:
        for number in range(cell, cell + 10):
            try:
                send(frame({"type": "done", "cell": number, "status": "ok", "diagnostics": {}}, b'"forged"'))
            except OSError:
                pass
threading.Thread(target=later, daemon=True).start()
`);
    expect(["ok", "sandbox_lost"]).toContain(outcome.status);
    await cellSession.expectTruthful();
    await cellSession.expectTruthful();
  }, 60_000);

  const patches: Record<string, string> = {
    "every builtin":
      "import builtins\nfor name in list(vars(builtins)):\n    if not name.startswith('_'):\n        setattr(builtins, name, None)",
    "the import system": "import builtins, sys\nbuiltins.__import__ = lambda *_, **__: None\nsys.meta_path.clear()\nsys.path_hooks.clear()",
    "the list of modules": "import sys\nsys.modules.clear()",
    json: "import json\njson.dumps = json.loads = lambda *_, **__: '{}'\njson.JSONEncoder.encode = lambda *_: '{}'",
    os: "import os\nos.getpid = lambda: 1\nos.fork = lambda: 0\nos.write = os.read = lambda *_: b''\nos._exit = lambda *_: None\nos.close = lambda *_: None",
    "the worker's frames":
      "import sluice_worker.frames, sluice_worker.connection\nsluice_worker.frames.encode = lambda *_: b'escaped'\nsluice_worker.connection.encode = lambda *_: b'escaped'",
    "the worker's connection": "import sluice_worker.connection as c\nc.Connection.send = lambda *_, **__: None",
    "the worker's cell process":
      "import sluice_worker.cell_process as c\nc.CellProcess.run = lambda self, header, code: self.connection.send({'type': 'done', 'cell': header['cell'], 'status': 'ok'}, b'[4,2]')",
    "the worker's spawn":
      "import sluice_worker.cell_process as c\nc.CellProcess.spawn = lambda self: self.connection.send({'type': 'spawned', 'pid': 1})",
    "the monitor's code, which runs elsewhere":
      "import sluice_worker.monitor as m\nm.Monitor._finish = m.Monitor._kill_cell = m.kill_others = lambda *_: None",
    "the limits of a cell":
      "import sluice._cell as c\nc.CellReport.check_artifact_count = lambda self: None\nc.CellReport.finish = lambda self, value, has: c.FinishedCell(b'\"' + b'r' * (11 << 20) + b'\"', {})",
    "the cell report": "import sluice._cell as c\nc.begin = lambda *_: None",
    "its own stack frames": "import sys\nat = sys._getframe()\nwhile at.f_back is not None:\n    at = at.f_back\nat.f_globals.clear()",
    tracing:
      "import sys, threading\ndef tracer(*_):\n    raise RuntimeError('traced')\nsys.settrace(tracer)\nsys.setprofile(tracer)\nthreading.settrace(tracer)",
    "exit handlers":
      "import atexit, os\natexit.register(os.kill, 1, 9)\nclass Last:\n    def __del__(self):\n        import os\n        os.kill(-1, 9)\nlast = Last()",
    "the audit of events": "import sys\ndef hook(event, arguments):\n    raise RuntimeError(event)\nsys.addaudithook(hook)",
    "integers in memory": "import ctypes\nctypes.memmove(id(7) + 24, id(8) + 24, 4)",
  };
  it.each(Object.keys(patches))(
    "a cell that patches %s deceives only itself",
    async (name) => {
      await using own = await openAttackedCellSession(runtime, traps, { cellTimeoutMs: 3_000 });
      const outcome = await own.run(patches[name]!);
      expect(["ok", "python_error", "crashed", "sandbox_lost", "timeout", "output_limit"]).toContain(outcome.status);
      expect((outcome.resultJson ?? "").length).toBeLessThan(1024);
      const next = await own.run("kept");
      // A patch is state of the cell session like any other: the next cell works, or fails because of it and reports that.
      if (next.status === "ok") expect([null, "[4,2]"]).toContain(next.resultJson);
      else expect(next.error?.message).toBeTruthy();
    },
    60_000,
  );

  it("patches of one cell session do not affect another", async () => {
    await using fresh = await openAttackedCellSession(runtime, traps);
    await fresh.expectIntact();
    const outcome = await fresh.run("import json, os\n[json.loads(json.dumps([7, 8])), os.getpid() > 1, len('four')]");
    expect(outcome.resultJson).toBe("[[7,8],true,4]");
  }, 60_000);
});

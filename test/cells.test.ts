import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../src/create-runtime.ts";
import type { CellRequest, CellSession } from "../src/cells/open-cell-session.ts";
import type { CellArtifact, CellOutcome } from "../src/protocol/outcome.ts";
import { defaultLimits, withLimits } from "../src/sandbox/limits.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

/** The behaviour of cells, on every driver. */
describe.each(testedDrivers)("cells on %s", (driver) => {
  let runtime: Runtime;
  let session: CellSession;

  beforeAll(async () => {
    runtime = openTestRuntime(driver, { poolSize: 1 });
    session = await runtime.openCellSession();
  }, 180_000);
  afterAll(async () => await runtime.close(), 60_000);

  const run = async (code: string, more: Partial<CellRequest> = {}, on: CellSession = session): Promise<CellOutcome> =>
    await on.run({ code, ...more });
  const value = async (code: string, on: CellSession = session): Promise<unknown> => {
    const outcome = await run(code, {}, on);
    expect(outcome.error?.traceback ?? outcome.error?.message, code).toBeUndefined();
    return outcome.resultJson === null ? null : JSON.parse(outcome.resultJson);
  };

  test("variables, imports, functions and scratch files are available in the next cell", async () => {
    await value("import collections\nkept = {'a': 1}\ndef twice(x): return 2 * x\nopen('kept.txt', 'w').write('kept')");
    expect(await value("[kept, twice(4), collections.Counter('aab')['a'], open('kept.txt').read()]")).toEqual([{ a: 1 }, 8, 2, "kept"]);
  });

  test.each([300_000, 9_000_000])(
    "a result of %d bytes, far more than the channel can hold at once, arrives whole, twice",
    async (bytes) => {
      await using own = await runtime.openCellSession();
      for (const letter of ["a", "b"]) {
        const { status, error, resultJson } = await run(`set_result("${letter}" * ${bytes})`, {}, own);
        expect([status, error, resultJson === JSON.stringify(letter.repeat(bytes))]).toEqual(["ok", undefined, true]);
      }
    },
  );

  test("files and figures that a cell left open can be used by the next one", async () => {
    await value(
      "log = open('log.txt', 'w+')\nlog.write('one ')\nfig, ax = plt.subplots()\nax.plot([1, 2], label='kept')\nfig.canvas.draw()",
    );
    expect(await value("log.write('two')\nlog.seek(0)\nlog.read()")).toBe("one two");
    const drawn = await run("ax.set_title('A title drawn later')\nsave_figure(alt='A line drawn over two cells', fig=fig)");
    expect(drawn).toMatchObject({ status: "ok", stderr: "", artifacts: [{ kind: "image" }] });
  });

  test.each([
    ["raises", "kept['a'] = 99\nnew = 1\n1 / 0", "python_error"],
    ["exits", "kept['a'] = 99\nimport sys\nsys.exit(3)", "python_error"],
    ["dies by a signal", "kept['a'] = 99\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashed"],
    ["ends its process", "kept['a'] = 99\nimport os\nos._exit(7)", "crashed"],
    ["does not parse", "kept['a'] = 99\nfor", "python_error"],
  ])("after a cell that %s the next one finds the variables unchanged", async (_, code, status) => {
    await value("kept = {'a': 1}");
    const failed = await run(code);
    expect(failed.status).toBe(status);
    expect(failed.artifacts).toEqual([]);
    expect(await value("[kept, 'new' in globals()]")).toEqual([{ a: 1 }, false]);
  });

  test("a cell that catches every exception is stopped at its time limit, and earlier variables are intact", async () => {
    await using own = await runtime.openCellSession({ limits: withLimits({ cellTimeoutMs: 1_000 }) });
    await value("kept = 5", own);
    const outcome = await run(
      "print('started', flush=True)\nkept = 6\nwhile True:\n    try:\n        while True: pass\n    except BaseException: pass",
      {},
      own,
    );
    expect(outcome).toMatchObject({
      status: "timeout",
      stdout: "started\n",
      error: { type: "Timeout", limit: { name: "cellTimeoutMs", allowed: 1000 } },
    });
    expect(outcome.timing.runMs).toBeLessThan(4_000);
    expect(await value("kept", own)).toBe(5);
  });

  test("an abort ends the cell long before its time limit, and the cell session goes on", async () => {
    await using own = await runtime.openCellSession(); // its cell can be replayed, so a machine that is too slow to interrupt a cell loses no variables
    await value("kept = 5", own);
    const stop = new AbortController();
    let abortedAt = 0;
    const giveUp = (): void => {
      abortedAt = performance.now();
      stop.abort(new Error("enough"));
    };
    const running = run("kept = 6\nprint('started', flush=True)\nwhile True: pass", { signal: stop.signal, onOutput: giveUp }, own);
    await expect(running).rejects.toThrow("enough");
    expect(performance.now() - abortedAt).toBeLessThan(defaultLimits.cellTimeoutMs / 2);
    expect(await value("kept", own)).toBe(5);
  });

  test("a memory error names the limit and the peak, and the next cell works", async () => {
    await using own = await runtime.openCellSession({ limits: withLimits({ memoryBytes: 512 * 1024 * 1024 }) });
    await value("kept = 5", own);
    for (const code of ["held = np.ones(1_000_000_000)", "held = []\nwhile True: held.append(bytearray(4_000_000))"]) {
      const outcome = await run(code, {}, own);
      expect(outcome).toMatchObject({ status: "out_of_memory", error: { limit: { name: "memoryBytes", allowed: 512 * 1024 * 1024 } } });
      expect(await value("kept", own)).toBe(5);
    }
  });

  test("tracebacks show only the user's lines", async () => {
    const outcome = await run("def inner(x):\n    return 1 / x\n\n\ninner(0)");
    expect(outcome.error).toMatchObject({ type: "ZeroDivisionError", message: "division by zero", line: 2 });
    expect(outcome.error?.traceback).toContain("return 1 / x");
    expect(outcome.error?.traceback).toMatch(/line 5, in <module>\n\s+inner\(0\)/);
    expect(outcome.error?.traceback).not.toMatch(/sluice_worker/);
    const syntax = await run("x = 1\ny = = 2");
    expect(syntax.error).toMatchObject({ type: "SyntaxError", line: 2, column: 5 });
    expect(syntax.error?.traceback).not.toMatch(/sluice_worker|ast\.py/);
  });

  test("input() and reading stdin give a clear error at once", async () => {
    for (const code of ["input('name? ')", "import sys\nsys.stdin.read()", "import sys\nfor line in sys.stdin: pass"]) {
      const outcome = await run(code);
      expect(outcome).toMatchObject({
        status: "python_error",
        error: { type: "RuntimeError", message: expect.stringContaining("no standard input") },
      });
    }
  });

  test("output is streamed while the cell runs, also from native code", async () => {
    const seen: string[] = [];
    const code =
      "import os, subprocess, sys\nprint('one')\nos.write(1, b'two\\n')\nsubprocess.run(['/bin/echo', 'three'])\nprint('four', file=sys.stderr)";
    const outcome = await run(code, { onOutput: (stream, text) => seen.push(`${stream}:${text}`) });
    expect(outcome.stdout).toBe("one\ntwo\nthree\n");
    expect(outcome.stderr).toBe("four\n");
    expect(seen.join("")).toContain("stderr:four\n");
  });

  test("too much output is cut in the middle, with a count, and the cell goes on", async () => {
    const outcome = await run("print('start')\nfor _ in range(4000): print('x' * 999)\nprint('end')\nset_result('done')");
    expect(outcome).toMatchObject({ status: "ok", resultJson: '"done"' });
    const omitted = outcome.truncated!.stdout!.omittedBytes;
    expect(omitted).toBe(6 + 4000 * 1000 + 4 - 1024 * 1024);
    expect(outcome.stdout.startsWith("start\n")).toBe(true);
    expect(outcome.stdout.endsWith("end\n")).toBe(true);
    expect(outcome.stdout).toContain(`${omitted} bytes of stdout omitted`);
  });

  test("a result over its limit ends the cell as output_limit, with the limit", async () => {
    await using own = await runtime.openCellSession({ limits: withLimits({ resultBytes: 1000 }) });
    expect(await run("set_result('x' * 2000)", {}, own)).toMatchObject({
      status: "output_limit",
      error: { limit: { allowed: 1000, seen: 2002 } },
    });
    expect(await value("set_result('x' * 900)", own)).toHaveLength(900);
  });

  test("inputs are bound as globals and in inputs[...], parsed only if used, and sent once", async () => {
    await using own = await runtime.openCellSession();
    own.bind("rows", { format: "json", bytes: Buffer.from('[{"a": 9007199254740993}, {"a": 2}]') });
    own.bind("table", { format: "csv", bytes: Buffer.from("a,b\n1,x\n2,y\n") });
    own.bind("broken", { format: "json", bytes: Buffer.from("{nonsense") });
    own.bind("note", { format: "text", bytes: Buffer.from("grüße") });
    const exact = await run("[rows[0]['a'], table['a'].sum(), inputs['note'], sorted(inputs)]", {}, own);
    expect(exact.resultJson).toBe('[9007199254740993,3,"grüße",["broken","note","rows","table"]]');
    expect(await run("x = 1\nbroken['a']", {}, own)).toMatchObject({
      status: "python_error",
      error: { type: "InputError", line: 2, message: expect.stringContaining("input 'broken' is not readable as json") },
    });
    await value("rows.append(1)\nlen(rows)", own);
    expect(await value("len(rows)", own)).toBe(3);
    expect(
      await value("amounts[0]['a'] == rows[0]['a']", {
        ...own,
        run: (request) => own.run({ ...request, names: { amounts: "rows" } }),
      }),
    ).toBe(true);
    expect(await run("inputs['nothing']", {}, own)).toMatchObject({
      error: { message: expect.stringContaining("broken, note, rows, table") },
    });
  });

  test("inputs that do not fit are refused with their sizes before anything is sent", async () => {
    await using own = await runtime.openCellSession({ limits: withLimits({ inputBytes: 1000, memoryBytes: 256 * 1024 * 1024 }) });
    expect(() => own.bind("big", { format: "text", bytes: Buffer.alloc(1001) })).toThrow(
      "Inputs have 1001 bytes with big, 1000 are allowed.",
    );
    await expect(run(`x = '${"y".repeat(300_000)}'`, {}, own)).rejects.toMatchObject({ code: "CODE_TOO_LONG" });
  });

  test("threads of BLAS, pyarrow and Python work in a cell and after the next one", async () => {
    const code = `
import pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq, io, concurrent.futures as cf
a = np.random.rand(200, 200)
product = float((a @ np.linalg.inv(a)).trace())
sink = io.BytesIO(); pq.write_table(pa.table({'x': list(range(50000))}), sink)
total = pc.sum(pq.read_table(io.BytesIO(sink.getvalue()), use_threads=True)['x']).as_py()
with cf.ThreadPoolExecutor(4) as pool: squares = list(pool.map(lambda n: n * n, range(5)))
[round(product), total, squares]`;
    expect(await value(code)).toEqual([200, 1249975000, [0, 1, 4, 9, 16]]);
    expect(await value(code)).toEqual([200, 1249975000, [0, 1, 4, 9, 16]]);
  });

  test("asyncio and multiprocessing work", async () => {
    expect(await value("import asyncio\nasync def f(): await asyncio.sleep(0); return 3\nasyncio.run(f())")).toBe(3);
    expect(
      await value(
        "import multiprocessing as mp\ndef g(x): return x + 1\nwith mp.get_context('fork').Pool(2) as pool: got = pool.map(g, [1, 2])\ngot",
      ),
    ).toEqual([2, 3]);
  });

  test("a thread or process that a cell leaves behind is reported, and does not reach the next cell's output", async () => {
    const code =
      "import threading, subprocess, time\ndef noise():\n    while True: print('noise'); time.sleep(0.001)\nthreading.Thread(target=noise, daemon=True).start()\nsubprocess.Popen(['/bin/sh', '-c', 'while :; do echo noise; done'])\n'left'";
    await using own = await runtime.openCellSession();
    const outcome = await run(code, {}, own);
    expect(outcome).toMatchObject({ status: "ok", diagnostics: { leftBehind: { threads: 1, processes: expect.any(Number) } } });
    expect((outcome.diagnostics["leftBehind"] as { processes: number }).processes).toBeGreaterThan(0);
    const next = await run("import os\nlen([p for p in os.listdir('/proc') if p.isdigit()])", {}, own);
    expect(next.status).toBe("ok");
    expect(next.stdout.includes("noise") && driver === "bubblewrap").toBe(false);
  });

  test.each([
    ["children that have ended and were not waited for", "os._exit(0)", ""],
    ["children that are still alive", "time.sleep(600)", ""],
    ["children of children that have ended", "os.fork() or os._exit(0); os._exit(0)", ""],
    ["children of a cell that fails", "os._exit(0)", "raise ValueError('failed')"],
  ])("%s, as many as the limit allows, do not keep later cells from running", async (_, child, end) => {
    await using own = await runtime.openCellSession({ limits: withLimits({ processes: 20 }) });
    const fill = `import os, time
made = 0
try:
    while made < 20:
        if os.fork() == 0:
            try: ${child}
            finally: os._exit(0)
        made += 1
except BlockingIOError: pass
print(made)
${end}`;
    await value("kept = 1", own);
    const made: number[] = [];
    for (let cell = 0; cell < 2; cell += 1) {
      const { status, stdout, error } = await run(fill, {}, own);
      expect([status, error?.type]).toEqual(end === "" ? ["ok", undefined] : ["python_error", "ValueError"]);
      made.push(Number(stdout));
      expect(await value("import subprocess\nset_result([kept, subprocess.run(['/bin/true']).returncode])", own)).toEqual([1, 0]);
    }
    expect(Math.min(...made)).toBeGreaterThan(10);
  });

  test("a later cell can still ask for the exit status of a child that has ended", async () => {
    await using own = await runtime.openCellSession();
    const start = `import os, subprocess, multiprocessing as mp
def leave(): os._exit(4)
one = subprocess.Popen(['/bin/sh', '-c', 'exit 3'])
two = mp.get_context('fork').Process(target=leave); two.start()
for child in (one, two): os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)`;
    expect((await run(start, {}, own)).status).toBe("ok");
    expect(await value("[one.wait(), two._popen.returncode]", own)).toEqual([3, 4]);
  });

  test("figures are checked PNGs, and the emitted kinds must match the declared ones", async () => {
    const draw = "fig, ax = plt.subplots()\nax.plot([1, 2, 3], [2, 1, 3])\nsave_figure(alt='A line that falls and rises', title='Line')";
    const outcome = await run(draw, { expect: ["image"] });
    expect(outcome.artifacts).toMatchObject([
      { kind: "image", alt: "A line that falls and rises", title: "Line", contentHash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    await value("kept = 1");
    const undeclared = await run(`kept = 2\n${draw}`, { expect: [] });
    expect(undeclared).toMatchObject({
      status: "contract_violation",
      artifacts: [],
      error: { message: expect.stringContaining("declared no artifact and emitted image") },
    });
    const missing = await run("kept = 3", { expect: ["image"] });
    expect(missing).toMatchObject({ status: "contract_violation", error: { message: expect.stringContaining("save_figure(alt)") } });
    expect(await value("kept")).toBe(1);
  });

  test("results, pictures and data that are larger than a frame arrive complete", async () => {
    const code = `
fig, ax = plt.subplots(figsize=(9, 9))
ax.imshow(np.random.rand(900, 900))
ax.plot(np.arange(100_000) % 900, np.arange(100_000) // 900, label='many')
save_figure(alt='Noise that does not compress', fig=fig)
set_result(list(range(700_000)))`;
    const { status, error, artifacts, resultJson } = await run(code);
    expect(error?.message).toBeUndefined();
    expect(status).toBe("ok");
    expect(resultJson).toHaveLength(700_000 * 7 - 111_109);
    expect(artifacts).toHaveLength(1);
    const [image] = artifacts as [Extract<CellArtifact, { kind: "image" }>];
    expect(image.bytes.length).toBeGreaterThan(1024 ** 2);
    const [axes] = image.figure!.axes;
    expect(axes!.series.map(({ label }) => label)).toEqual(["many"]);
    expect(axes!.series[0]!.x).toHaveLength(100_000);
    expect(axes!.unread).toMatchObject([{ reason: expect.stringMatching(/too (large|many) to send/) }]);
  });

  const forge = `
import json, os, socket, stat, struct
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            channel = socket.socket(fileno=os.dup(fd))
            break
    except OSError:
        pass
def send(header, body):
    head = json.dumps(header).encode()
    channel.sendall(struct.pack(">III", 0x534C5501, len(head), len(body)) + head + body)
part = bytes(700_000)
`;
  test.each([
    ["data", "artifactDataBytes"],
    ["image", "artifactBytes"],
    ["result", "resultBytes"],
  ] as const)("forged frames with too much of %s end only their cell, with the limit %s", async (kind, name) => {
    await using own = await runtime.openCellSession();
    await value("kept = 5", own);
    const outcome = await run(`${forge}\nkept = 6\nwhile True: send({"type": "chunk", "of": "${kind}"}, part)`, {}, own);
    expect(outcome).toMatchObject({
      status: "output_limit",
      artifacts: [],
      error: { type: "OutputLimit", limit: { name, allowed: defaultLimits[name], seen: expect.any(Number) } },
    });
    const next = await run("kept", {}, own);
    expect(next).toMatchObject({ status: "ok", resultJson: "5" });
    expect(next.sandbox.id === outcome.sandbox.id).toBe(driver === "bubblewrap");
  });

  test("a slow cell is not replayed, and a failure after it still rolls back", async () => {
    await using own = await runtime.openCellSession();
    await value("import time\ntime.sleep(0.6)\nruns = globals().get('runs', 0) + 1\nstamp = time.time()", own);
    const stamp = await value("stamp", own);
    expect((await run("runs = 50\n1 / 0", {}, own)).status).toBe("python_error");
    expect(await value("[runs, stamp]", own)).toEqual([1, stamp]);
  });

  test("only the last committed cell can be undone", async () => {
    await using own = await runtime.openCellSession();
    await value("kept = [1]", own);
    await value("kept.append(2)", own);
    await own.undo();
    expect(await value("kept", own)).toEqual([1]);
    expect((await run("kept.append(9)\n1 / 0", {}, own)).status).toBe("python_error");
    await value("import time\nstamp = time.time()\nkept.append(3)", own); // cannot be replayed
    await value("kept.append(4)", own);
    await own.undo();
    expect(await value("kept", own)).toEqual([1, 3]);
  });

  test("seeds are fixed: two sandboxes draw the same numbers", async () => {
    const code = "import random\n[random.random(), np.random.rand(), hash('sluice')]";
    await using one = await runtime.openCellSession();
    await using two = await runtime.openCellSession();
    expect(await value(code, one)).toEqual(await value(code, two));
  });

  test("files that a failed cell changed are listed", async () => {
    const outcome = await run("open('half.csv', 'w').write('x')\n1 / 0");
    expect(outcome.diagnostics["scratchChanged"]).toEqual(["half.csv"]);
  });

  test("time, memory and cpu are measured", async () => {
    const outcome = await run("held = np.ones(10_000_000)\nfor number in range(2_000_000): str(number)\ndel held");
    expect(outcome.usage.peakMemoryBytes).toBeGreaterThan(80_000_000);
    expect(outcome.usage.cpuMs).toBeGreaterThan(50);
    expect(outcome.timing.runMs).toBeGreaterThan(50);
    expect(outcome.timing.totalMs).toBeGreaterThanOrEqual(outcome.timing.runMs);
  });
});

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseProbe } from "../src/protocol/probe.ts";

const sluice = path.resolve(import.meta.dirname, "../bin/sluice");

/** Runs the real `sluice run` with the default driver, in a shell with another version of Node.js. */
describe("sluice run", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), "sluice-run-"));
    writeFileSync(path.join(directory, "rows.json"), '[{"n": 12345678901234567890}, {"n": 2}]');
    writeFileSync(path.join(directory, "table.csv"), "a,b\n1,x\n2,y\n");
    writeFileSync(path.join(directory, "table.tsv"), "a\tb\n3\tx\n");
    writeFileSync(path.join(directory, "note.txt"), "hello");
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  function run(args: string[], stdin = ""): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(sluice, ["run", ...args], { cwd: directory, input: stdin, encoding: "utf8", maxBuffer: 2 ** 28 });
  }

  /** Whether the command has installed its signal handlers. SIGHUP is the last of them, and Node.js itself has no handler for it. */
  function catchesSignals(pid: number): boolean {
    if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("main.ts")) return false;
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return (Number.parseInt(caught?.slice(-1) ?? "0", 16) & 1) !== 0;
  }

  test("binds inputs by their format, and prints exactly one JSON document with --json", () => {
    const code = "print('noise')\nset_result({'n': rows[0]['n'], 'sum': int(table['a'].sum()), 'tsv': tab['a'].tolist(), 'text': note})";
    const files = ["--input", "rows=rows.json", "--input", "table=table.csv", "--input", "tab=table.tsv", "--input", "note=note.txt"];
    const { status, stdout, stderr } = run(["-", "--json", ...files], code);
    expect(status).toBe(0);
    expect(stdout).toContain('"n": 12345678901234567890');
    const document = JSON.parse(stdout) as Record<string, unknown>;
    expect(document).toMatchObject({
      schemaVersion: 1,
      status: "ok",
      result: { sum: 3, tsv: [3], text: "hello" },
      stdout: "noise\n",
      stderr: "",
      artifacts: [],
    });
    expect(Object.keys(document).sort()).toEqual([
      "artifacts",
      "diagnostics",
      "result",
      "sandbox",
      "schemaVersion",
      "status",
      "stderr",
      "stdout",
      "timing",
      "usage",
    ]);
    const probes = stderr
      .split("\n")
      .map(parseProbe)
      .filter((probe) => probe !== null);
    expect(probes.map((probe) => probe.fields["event"])).toEqual(["python_call_start", "python_call_success"]);
    expect(probes[0]!.fields).toMatchObject({
      inputAliasCount: 4,
      codeBytes: code.length,
      turnId: expect.any(String),
      sandboxId: expect.any(String),
    });
    expect(probes[1]!.fields).toMatchObject({ stdoutChars: 6, artifactCount: 0, start: expect.stringMatching(/restored|forked|cold/) });
  });

  test("reads Parquet and writes a figure to the file that the JSON names", () => {
    const make = run(
      ["-", "--json", "--quiet"],
      "import base64\npd.DataFrame({'x': [1.5, 2.5]}).to_parquet('t.parquet')\nbase64.b64encode(open('t.parquet', 'rb').read()).decode()",
    );
    writeFileSync(path.join(directory, "t.parquet"), Buffer.from((JSON.parse(make.stdout) as { result: string }).result, "base64"));
    const code = "plt.plot(t['x'])\nsave_figure(alt='Two points that rise', title='Rise')\nt['x'].sum()";
    const { status, stdout, stderr } = run(["-", "--json", "--quiet", "--expect", "image", "--input", "t=t.parquet"], code);
    expect([status, stderr]).toEqual([0, ""]);
    const { result, artifacts } = JSON.parse(stdout) as {
      result: number;
      artifacts: { url: string; alt: string; bytes: number; width: number }[];
    };
    expect(result).toBe(4);
    expect(artifacts).toHaveLength(1);
    const png = readFileSync(fileURLToPath(artifacts[0]!.url));
    expect(png.length).toBe(artifacts[0]!.bytes);
    expect(png.readUInt32BE(16)).toBe(artifacts[0]!.width);
  });

  test("prints live output, a table, the file of the figure and one line of timing", () => {
    const { status, stdout, stderr } = run([path.resolve(import.meta.dirname, "../examples/cells/first-figure.py"), "--quiet"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^731 readings, .*\nday +mean +min +max\n─+/);
    expect(stdout).toMatch(/image: sluice-out\/image-1-[0-9a-f]{8}\.png/);
    expect(stderr).toMatch(/^ran .*, start .*, cpu .*, peak \d+ MB, \w+ \S+\n$/);
  });

  test("exits with 1 for a failed cell, with its traceback", () => {
    const { status, stdout } = run(["-", "--quiet"], "x = {}\nx['missing']");
    expect(status).toBe(1);
    expect(stdout).toBe(
      "failed: python_error\nTraceback (most recent call last):\n  File \"<cell 1>\", line 2, in <module>\n    x['missing']\n    ~^^^^^^^^^^^\nKeyError: 'missing'\n",
    );
    const late = run(["-", "--json", "--quiet", "--timeout-s", "0.5"], "while True: pass");
    expect(late.status).toBe(1);
    expect(JSON.parse(late.stdout)).toMatchObject({
      status: "timeout",
      result: null,
      error: { limit: { name: "cellTimeoutMs", allowed: 500 } },
    });
  });

  test("prints a probe line for a failed cell with the place, the status and the reason", () => {
    const { status, stderr } = run(["-", "--driver", "bubblewrap"], "import os\nos._exit(7)");
    expect(status).toBe(1);
    const [start, failure, ...others] = stderr
      .split("\n")
      .map(parseProbe)
      .filter((probe) => probe !== null);
    expect([start!.fields["event"], others]).toEqual(["python_call_start", []]);
    const { turnId, sandboxId } = start!.fields;
    expect(failure).toEqual({
      source: "python-sandbox-latency-probe",
      fields: {
        ...{ event: "python_call_failure", turnId, stage: "run", status: "crashed", exitCode: 7 },
        error:
          "Crashed: The process that ran the cell exited with status 7 (os._exit, or its channel was closed). Variables are as they were before the cell.",
        ...{ sandboxId, driver: "bubblewrap", start: "forked", boot: "cold" },
        ...Object.fromEntries(
          ["queueMs", "startMs", "runMs", "totalMs", "peakMemoryBytes", "cpuMs"].map((name) => [name, expect.any(Number) as number]),
        ),
      },
    });
  });

  test("enforces --memory-mb, and writes no artifacts if the cell did not emit what --expect declares", () => {
    const options = ["-", "--json", "--quiet", "--memory-mb", "400", "--expect", "image,chart", "--out", "declared"];
    const small = run(options, "held = [np.ones(1 << 20) for _ in range(200)]");
    expect([small.status, JSON.parse(small.stdout)]).toMatchObject([
      1,
      { status: "out_of_memory", error: { limit: { name: "memoryBytes", allowed: 400 * 1024 * 1024 } } },
    ]);
    const missing = run(options, "plt.plot([1, 2])\nsave_figure(alt='A line that rises by one')");
    expect([missing.status, JSON.parse(missing.stdout)]).toMatchObject([
      1,
      {
        status: "contract_violation",
        artifacts: [],
        error: { message: "the call declared chart and image and emitted image. Call render_chart(spec, data)." },
      },
    ]);
    expect(existsSync(path.join(directory, "declared"))).toBe(false);
  });

  test.each([
    [[], "expected one script, got 0"],
    [["a.py", "b.py"], "expected one script, got 2"],
    [["none.py"], "no such file"],
    [["-", "--input", "x"], "must be ALIAS=FILE"],
    [["-", "--input", "1x=rows.json"], "the alias must be a Python name"],
    [["-", "--input", "x=rows.xml"], "supported extensions are .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .txt"],
    [["-", "--expect", "video"], "--expect must be image, chart or both"],
    [["-", "--driver", "docker"], "--driver must be one of"],
    [["-", "--timeout-s=-1"], "positive number"],
    [["-", "--no-such-flag"], "no-such-flag"],
  ])("exits with 2 for %j and says what is wrong", (args, message) => {
    const { status, stdout, stderr } = run(args);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
  });

  test("stops the cell silently when the reader closes the pipe", () => {
    const script = `"$0" run - --quiet | head -c 3; echo " $\{PIPESTATUS[0]}"`;
    const endless = "while True: print('x' * 1000, flush=True)";
    const { stdout, stderr } = spawnSync("bash", ["-c", script, sluice], { input: endless, encoding: "utf8", cwd: directory });
    expect([stdout, stderr]).toEqual(["xxx 141\n", ""]);
  });

  test("stops waiting for standard input on Ctrl-C", async () => {
    const child = spawn(sluice, ["run", "-", "--input", "note=note.txt"], { cwd: directory, stdio: ["pipe", "ignore", "pipe"] });
    const closed = once(child, "close");
    const stderr = child.stderr.setEncoding("utf8").toArray();
    while (!catchesSignals(child.pid!)) await wait(20);
    child.kill("SIGINT");
    const [status] = (await closed) as [number];
    expect([status, (await stderr).join("")]).toEqual([130, "sluice: interrupted; the cell was stopped and its sandbox removed.\n"]);
  });

  test("exits with 3 when there is no sandbox, and says what to do", () => {
    const empty = mkdtempSync(path.join(tmpdir(), "sluice-empty-"));
    const { status, stderr } = spawnSync(sluice, ["run", "-"], {
      input: "1",
      encoding: "utf8",
      env: { ...process.env, SLUICE_CACHE: empty },
    });
    rmSync(empty, { recursive: true });
    expect([status, stderr]).toEqual([
      3,
      "sluice: There is no snapshot for this version of Sluice in the cache.\n  Run `sluice prepare` (`npx sluice prepare` where it is a dependency, `npm run setup` in a clone).\n",
    ]);
  });
});

describe("sluice", () => {
  test("prints the version of the package", () => {
    const { version } = JSON.parse(readFileSync(path.join(import.meta.dirname, "../package.json"), "utf8")) as { version: string };
    const { status, stdout } = spawnSync(sluice, ["--version"], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, `${version}\n`]);
  });

  test.each([
    [["fly"], 'sluice: unknown command "fly".'],
    [["doctor", "--fly"], "sluice: Unknown option '--fly'"],
    [[], "sluice: sandboxed Python for AI agents"],
  ])("exits with 2 and says how to use it (%s)", (args, message) => {
    const { status, stdout, stderr } = spawnSync(sluice, args, { encoding: "utf8" });
    expect([status, stdout, stderr.startsWith(message), /sluice (doctor|run SCRIPT)/.test(stderr)]).toEqual([2, "", true, true]);
  });
});

describe("sluice doctor", () => {
  test("reports the default driver, the checks of each driver and the snapshot", () => {
    const { status, stdout } = spawnSync(sluice, ["doctor", "--json"], { encoding: "utf8" });
    expect(status).toBe(0);
    const found = JSON.parse(stdout) as {
      default: string;
      drivers: { name: string; usable: boolean; checks: { name: string; ok: boolean; detail: string }[] }[];
      snapshot: { id: string };
    };
    expect(Object.keys(found)).toEqual(["schemaVersion", "default", "drivers", "snapshot", "history"]);
    expect(Object.keys(found.snapshot)).toEqual(["id", "python", "packages", "source", "bytes"]);
    expect(found.drivers.map(({ name }) => name)).toEqual(["gvisor", "gvisor-rootless", "bubblewrap"]);
    for (const name of ["gvisor", "bubblewrap"]) {
      const driver = found.drivers.find((one) => one.name === name)!;
      expect(driver, name).toEqual({ name, usable: true, checks: expect.any(Array) });
      expect(driver.checks.map((check) => Object.keys(check).join())).toEqual(driver.checks.map(() => "name,ok,detail"));
      expect(driver.checks[0]?.detail).toMatch(name === "gvisor" ? /^runsc \S+ \(released \S+, .* ago\)/ : /^bubblewrap \d/);
      expect(driver.checks.map((check) => check.name).sort()).toEqual([
        "capabilities",
        "dns",
        "engine",
        "file system",
        "memory",
        "network",
        "processes",
        "syscalls",
      ]);
      expect(driver.checks.every((check) => check.ok)).toBe(true);
    }
    expect(found.default).toBe("gvisor");
    expect(found.snapshot.id).toMatch(/^[0-9a-f]{32}$/);
  });
});

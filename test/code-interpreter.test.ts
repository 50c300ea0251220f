import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { trace, type Attributes, type Span, type Tracer, type TracerProvider } from "@opentelemetry/api";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createArtifactChecker } from "../src/artifacts/create-artifact-checker.ts";
import { createMemoryStore, type ArtifactStore } from "../src/artifacts/artifact-store.ts";
import { renderChart } from "../src/interpreter/render-chart.ts";
import type { Runtime } from "../src/create-runtime.ts";
import { toolErrorSchema, type ToolError } from "../src/errors/tool-error.ts";
import { NoSandboxError, SluiceError } from "../src/errors/sluice-error.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import type { EvidenceStore, FileContent } from "../src/evidence/evidence-store.ts";
import { runCodeInterpreter } from "../src/interpreter/code-interpreter.ts";
import type { CodeInterpreterCall, ContractOperation } from "../src/interpreter/call-contract/code-interpreter-call.ts";
import { openCellSession, type CellSession } from "../src/cells/open-cell-session.ts";
import type { ImageArtifact } from "../src/protocol/artifact.ts";
import type { CellOutcome } from "../src/protocol/outcome.ts";
import { parseProbe } from "../src/protocol/probe.ts";
import { runPythonCodeEdit } from "../src/interpreter/python-code-edit.ts";
import type { ToolResult } from "../src/interpreter/tool-result.ts";
import { disposeTurnSandbox, type InterpreterTurn } from "../src/interpreter/interpreter-turn.ts";
import type { Lease, SandboxLimits } from "../src/sandbox/contract.ts";
import type { SandboxPool, TakenLease } from "../src/sandbox/pool.ts";
import { createCodeInterpreterTools } from "../src/turn/tools/create-code-interpreter-tools.ts";
import { createOutcome } from "./fixtures/create-outcome.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

interface Written {
  readonly aliases?: string[];
  readonly artifacts?: ("image" | "chart")[];
  readonly operation?: ContractOperation;
  readonly inputs?: Record<string, string>;
  readonly reason?: string;
}

/** A call as a model would write it. */
function call(
  code: string,
  { aliases = ["get_price_1"], artifacts = [], operation = "derive_metric", inputs, reason = "The user asked for it." }: Written = {},
): unknown {
  const postProcessingContract = { operation, reason, inputAliases: aliases, expectedArtifacts: artifacts };
  return { code, ...(inputs && { inputs }), postProcessingContract };
}

const figure = (alt = "A line that rises from one to three"): string =>
  `fig, ax = plt.subplots()\nax.plot([1, 2, 3], [1, 2, 3], label="price")\nax.set_title("Price")\nsave_figure(alt=${JSON.stringify(alt)})`;

/** A picture with a line that its artists list but that is invisible. */
const whiteFigure = "fig, ax = plt.subplots()\nax.plot([1, 2, 3], [1, 2, 3], color='white')\nax.set_axis_off()";

/** Emits bytes as an artifact without the helpers and their checks, as hostile code would. */
const put = (kind: "image" | "chart", header: string, bytes: string, data = "b''"): string =>
  `import io, struct, zlib
from sluice import _cell
drawn = io.BytesIO()
plt.plot([1, 2, 3])
plt.savefig(drawn, format="png")
plt.close("all")
png = drawn.getvalue()
huge = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 6, 0, 0, 0)
_cell.current().put_artifact("${kind}", ${header}, ${kind === "image" ? `${data}, ${bytes}` : bytes})`;

const editHint = "Fix it with python_code_edit: variables are as they were before this cell.";
const implicit = "The value of the last expression was used as the result. Call set_result(value) to be explicit.";
const replayed = (cells: number): string =>
  `The sandbox was replaced. The ${cells} earlier cell(s) were run again, so their variables and files are available. Files left by failed cells are lost.`;
const lostNote = (cells: number, because: string): string =>
  `The sandbox was replaced, and the variables and files of ${cells} earlier cell(s) are lost (${because}). Derive them again. Inputs are still bound.`;
const anyNumber = expect.any(Number) as number;

/** The result of a call that ran no cell. */
const refusal = {
  ...{ status: "refused", outcome: null, artifacts: [], aliases: [], cutAliases: [], resultAlias: null, findings: [], repair: null },
  text: expect.any(String) as string,
};
/** The result of a call whose cell failed. */
const failedCell = { ...refusal, status: "error" };

/** The complete tool error; fields that are not given are empty. */
function failure(facts: Partial<ToolError> & Pick<ToolError, "error_code" | "summary">): ToolError {
  return {
    error_kind: "sandbox_runtime",
    tool: "code_interpreter",
    details: [],
    hints: [],
    examples: [],
    retryable: false,
    _envelope_version: 1,
    ...facts,
  };
}

/** The traceback of an error in the second cell of a session. */
const inCell = (line: string, message: string): string =>
  `Traceback (most recent call last):\n  File "<cell 2>", line 1, in <module>\n    ${line}\n${message}\n`;
const overLimit =
  "the result is at least 2,002 bytes of JSON, at most 1,000 are allowed; aggregate, round or select rows before set_result";

/** The complete errors of refused contracts. */
const refusedCall = (facts: Partial<ToolError> & Pick<ToolError, "error_code" | "summary">): ToolError =>
  failure({ error_kind: "mcp_input_validation", examples: [exampleCall], ...facts });
const exampleCall = call("df = to_frame(get_price_1)\nset_result(df.describe())");
const generalExample = call("df = to_frame(get_price_1)\nset_result(df.describe())", {
  reason: "Derive the requested figure from the tool's output.",
});
const notAnObject = refusedCall({
  error_code: "SCHEMA_TYPE_MISMATCH",
  summary: "The call was not run. The call must be an object, not null.",
  details: [{ path: "", issue: "The call must be an object, not null.", received_type: "null", error_code: "SCHEMA_TYPE_MISMATCH" }],
  examples: [generalExample],
});
const twoMissing = refusedCall({
  error_code: "SCHEMA_REQUIRED",
  summary: "The call was not run. code is missing. And 1 more problem.",
  details: ["code", "postProcessingContract"].map((path) => ({
    path,
    issue: `${path} is missing.`,
    received_type: "missing",
    error_code: "SCHEMA_REQUIRED",
  })),
  examples: [generalExample],
});
const notPython = refusedCall({
  error_code: "PYTHON_SYNTAX_ERROR",
  summary: "The call was not run. Line 1, column 4: Expected an expression.",
  details: [
    {
      path: "code",
      issue: "Line 1, column 4: Expected an expression.",
      received_type: "string",
      error_code: "PYTHON_SYNTAX_ERROR",
      line: 1,
      column: 4,
    },
  ],
});
const unknownAlias = refusedCall({
  error_code: "ALIAS_UNKNOWN",
  summary: 'The call was not run. No tool output has the alias "get_prize_1". Did you mean "get_price_1"?',
  details: [
    {
      path: "postProcessingContract.inputAliases[0]",
      issue: 'No tool output has the alias "get_prize_1". Did you mean "get_price_1"?',
      received_type: "string",
      error_code: "ALIAS_UNKNOWN",
    },
  ],
  hints: ["Known aliases: get_price_1."],
});

describe.each(testedDrivers)("code_interpreter on %s", (driver) => {
  let runtime: Runtime;
  let evidence: EvidenceStore;
  let artifacts: ArtifactStore;
  let probes: string[];
  let turn: InterpreterTurn;
  /** Every sandbox of the turn, and the aliases that were sent to it. */
  let leases: Lease[];
  let shipped: unknown[];
  let takeLease = async (pool: SandboxPool, signal?: AbortSignal): Promise<TakenLease> => await pool.take({ signal });
  /** Limits of cell sessions in a test, if they differ from the runtime's. */
  let ownLimits: Partial<SandboxLimits>;
  const artifactChecker = createArtifactChecker();

  beforeAll(async () => {
    runtime = openTestRuntime(driver, { poolSize: 1 });
    await (await runtime.pool()).filled();
  }, 180_000);
  afterAll(async () => {
    await runtime.close();
    await artifactChecker[Symbol.asyncDispose]();
  }, 60_000);

  beforeEach(() => {
    evidence = createEvidenceStore();
    evidence.add({
      tool: "get_price",
      arguments: { symbol: "A" },
      output: '[{"day":"2026-01-01","price":1},{"day":"2026-01-02","price":3}]',
    });
    artifacts = createMemoryStore();
    probes = [];
    ownLimits = {};
    leases = [];
    shipped = [];
    const made = runtime.createTurn({ id: "turn-1", evidence, artifacts, onProbe: (line) => probes.push(line) });
    turn = { ...made, source: { ...made.source, openCellSession: openWatchedSession } };
    return async () => await disposeTurnSandbox(turn);
  });

  /** A cell session like the runtime's, over leases that the test can observe and close. */
  async function openWatchedSession(): Promise<CellSession> {
    const pool = await runtime.pool();
    const take = async (signal?: AbortSignal): Promise<TakenLease> => {
      const taken = await takeLease(pool, signal);
      const { channel } = taken.lease;
      const send: Lease["channel"]["send"] = async (header, body) => {
        if (header.type === "input") shipped.push(header["alias"]);
        await channel.send(header, body);
      };
      const lease = withReplaced(taken.lease, { channel: withReplaced(channel, { send }) });
      leases.push(lease);
      return { ...taken, lease };
    };
    return openCellSession({ rollback: pool.driver.rollback, limits: { ...runtime.limits, ...ownLimits }, artifactChecker, take });
  }

  const run = async (code: string, written: Written = {}, signal?: AbortSignal): Promise<ToolResult> =>
    await runCodeInterpreter(turn, call(code, written), { signal });
  const edit = async (oldText: string, newText: string, more: object = {}): Promise<ToolResult> =>
    await runPythonCodeEdit(turn, { edits: [{ oldText, newText }], ...more });
  const read = (answer: ToolResult): Record<string, unknown> => JSON.parse(answer.text) as Record<string, unknown>;
  /** The result of a call that must succeed. */
  const value = async (code: string, written: Written = {}): Promise<unknown> => {
    const answer = await run(code, written);
    expect(answer.error).toBeNull();
    return answer.outcome?.resultJson === null ? null : JSON.parse(answer.outcome!.resultJson);
  };
  /** The complete outcome; fields that depend on the machine match any value of their type. */
  const outcome = (given: Partial<CellOutcome>): CellOutcome =>
    createOutcome({
      timing: { queueMs: anyNumber, startMs: anyNumber, runMs: anyNumber, totalMs: anyNumber },
      usage: { peakMemoryBytes: anyNumber, cpuMs: anyNumber },
      sandbox: { id: expect.any(String) as string, driver, start: expect.stringMatching(/^(pool|restored|forked|cold)$/) as "pool" },
      ...given,
    });
  /** A given file whose content the test changes. */
  const addChangingFile = (name: string, text: string): { text: string } => {
    const file = { text };
    const shape = { kind: "table", rows: null, columns: [], columnCount: 0, columnsFromSample: false, path: [] } as const;
    const content: FileContent = {
      kind: "file",
      version: () => file.text,
      get bytes() {
        return file.text.length;
      },
      sha256: "0".repeat(64),
      shape,
      schema: [],
      reading: null,
      read: () => Buffer.from(file.text),
      learn: () => {},
    };
    evidence.addFile({ name, format: "csv", content });
    return file;
  };
  const toolErrorOf = ({ error: toolError }: ToolResult): unknown => {
    expect(toolErrorSchema.safeParse(toolError).error).toBeUndefined();
    return toolError;
  };
  describe("evidence in Python", () => {
    test("439 rows of 517 KB arrive in Python completely; the model reads a preview of at most 4 KB", async () => {
      const rows = Array.from({ length: 439 }, (_, index) => ({ index, note: "x".repeat(1155) }));
      const text = JSON.stringify({ data: { rows } });
      expect(Math.round(text.length / 1000)).toBe(517);
      const { alias } = evidence.add({ tool: "get_rows", output: { content: [{ type: "text", text }] } });
      expect(evidence.preview(alias).bytes).toBeLessThanOrEqual(4096);
      const seen = await value(`rows = ${alias}["data"]["rows"]\n[len(rows), sum(row["index"] for row in rows), len(to_frame(${alias}))]`, {
        aliases: [alias],
      });
      expect(seen).toEqual([439, (438 * 439) / 2, 439]);
    });

    test("integers past 2^53 and long decimals arrive unchanged, and results keep them", async () => {
      const text = '{"id": 9007199254740993, "big": 123456789012345678901234567890, "rate": 0.1234567890123456789012}';
      const { alias } = evidence.add({ tool: "get_ids", output: { content: [{ type: "text", text }] } });
      const answer = await run(
        `import json\nfrom decimal import Decimal\nset_result([${alias}["id"], ${alias}["big"] + 1, json.loads(inputs.text("${alias}"), parse_float=Decimal)["rate"]])`,
        {
          aliases: [alias],
        },
      );
      expect(answer.outcome?.resultJson?.replaceAll(" ", "")).toBe(
        '[9007199254740993,123456789012345678901234567891,"0.1234567890123456789012"]',
      );
      expect(answer.text).toContain("[9007199254740993,123456789012345678901234567891,");
      expect(await value(`${answer.resultAlias}[0] - ${alias}["id"]`, { aliases: [answer.resultAlias!] })).toBe(0);
    });

    test("aliases are globals, local names are optional, and aliases of the contract are bound even if the code does not spell them", async () => {
      const seen = await value('[len(get_price_1), prices is get_price_1, len(inputs["get_price_1"])]', {
        inputs: { prices: "get_price_1" },
      });
      expect(seen).toEqual([2, true, 2]);
      expect(await value('name = "get_price_" + "1"\nlen(globals()[name])')).toBe(2);
    });

    test("an alias is sent to each sandbox once", async () => {
      for (let cell = 0; cell < 3; cell += 1) expect(await value("len(get_price_1)")).toBe(2);
      expect(shipped).toEqual(["get_price_1"]);
      await leases.at(-1)!.close();
      expect(await value("len(get_price_1)")).toBe(2);
      expect([leases.length, shipped]).toEqual([2, ["get_price_1", "get_price_1"]]);
    });
  });

  describe("the turn's sandbox", () => {
    test("a malformed call and a turn without calls start no sandbox", async () => {
      await using idle = openTestRuntime(driver, { poolSize: 1 });
      const source = { ...turn.source, openCellSession: () => Promise.reject(new Error("a session was opened")) };
      const own = { ...turn, source };
      for (const [input, toolError] of [
        [null, notAnObject],
        [{}, twoMissing],
        [call("for"), notPython],
        [call("1", { aliases: ["get_prize_1"] }), { ...unknownAlias, examples: [call("1")] }],
      ]) {
        const answer = await runCodeInterpreter(own, input);
        expect(toolErrorOf(answer)).toEqual(toolError);
        expect(answer).toEqual({ ...refusal, error: toolError });
      }
      const never = idle.createTurn({ id: "never", evidence, artifacts });
      expect(await runCodeInterpreter(never, call("for"))).toEqual({ ...refusal, error: notPython });
      expect([never.sandbox, idle.gate.taken]).toEqual([null, 0]);
      await disposeTurnSandbox(never);
      expect([own.sandbox, leases]).toEqual([null, []]);
    });

    test("an import that is not in the snapshot fails in the cell, with a substitute", async () => {
      const messages = [];
      for (const module of ["requests", "polars"]) messages.push((await run(`import ${module}`)).error?.summary);
      expect(messages).toEqual([
        "ModuleNotFoundError: No module named 'requests'. The sandbox has no network: compute with data that tools have already fetched. (line 1)",
        "ModuleNotFoundError: No module named 'polars'. It is not installed and cannot be installed: use pandas (pd) instead. (line 1)",
      ]);
    });

    test("is opened by the first valid call, and later calls find its variables", async () => {
      const first = await run("kept = 4");
      const second = await run("kept + 1");
      expect(second.outcome?.resultJson).toBe("5");
      expect(second.outcome?.sandbox.id).toBe(first.outcome?.sandbox.id);
    });

    test("calls of one turn run one at a time, so a later one can use the result of an earlier one", async () => {
      const answers = await Promise.all([
        run("import time\ntime.sleep(0.3)\norder = ['a']\nset_result([10, 20])"),
        run("order.append('b')\nsum(result_1)", { aliases: ["result_1"] }),
        edit("sum(result_1)", "order + [max(result_1)]"),
      ]);
      expect(answers.map(({ outcome }) => outcome?.resultJson?.replaceAll(" ", ""))).toEqual(["[10,20]", "30", '["a","b",20]']);
      expect(answers.map(({ resultAlias }) => resultAlias)).toEqual(["result_1", "result_2", "result_3"]);
      expect(answers[1].outcome!.timing.queueMs).toBeGreaterThan(250);
    });

    test("an abort ends the cell within 250 ms and a waiting call at once, and the turn goes on", async () => {
      await run("kept = 5");
      let shortest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 8 && shortest >= 250; round += 1) {
        const stop = new AbortController();
        const begun = Promise.withResolvers<void>();
        const own = { ...turn, onOutput: () => begun.resolve() };
        const running = runCodeInterpreter(own, call("kept = 6\nprint('begun', flush=True)\nwhile True: pass"), { signal: stop.signal });
        const waiting = run("kept = 7", {}, stop.signal);
        await begun.promise;
        const lease = leases.at(-1)!;
        const abortedAt = performance.now();
        stop.abort(new Error("enough"));
        await expect(waiting).rejects.toThrow("enough");
        await expect(running).rejects.toThrow("enough");
        shortest = Math.min(shortest, performance.now() - abortedAt);
        if (driver === "gvisor") expect((await lease.died).cause).toBe("closed"); // gVisor ends the cell with its sandbox; with other drivers the worker reports its end
        expect(await value("kept")).toBe(5);
      }
      expect(shortest, "the best of some: the rest is the machine's").toBeLessThan(250);
    });

    test("when it is lost, the next call runs the earlier cells again in a new one, and says so", async () => {
      const before = await run("kept = 4");
      await leases[0]!.close();
      const next = await run("kept + 1");
      expect(next.outcome?.resultJson).toBe("5");
      expect(next.outcome?.sandbox.id).not.toBe(before.outcome?.sandbox.id);
      expect(read(next)["notes"]).toEqual([implicit, replayed(1)]);
    });

    test("when it is lost and its cells cannot be replayed, the next call says that the variables are lost", async () => {
      await run("import time\nkept = time.time()");
      await leases[0]!.close();
      const next = await run("'kept' in globals()");
      expect(next.outcome?.resultJson).toBe("false");
      expect(read(next)["notes"]).toEqual([
        implicit,
        lostNote(1, "the sandbox was lost, and running the earlier cells again would be slow or give other results"),
      ]);
    });

    test("when it is lost during a cell, the result says so without a repair, and the next call works", async () => {
      await run("kept = 4");
      const own = { ...turn, onOutput: () => void leases.at(-1)!.close() };
      const lost = await runCodeInterpreter(own, call("print('begun', flush=True)\nwhile True: pass"));
      const message = expect.stringMatching(/^The sandbox is gone: .+\.$/) as string;
      const toolError = failure({
        error_code: "SANDBOX_LOST",
        summary: message,
        details: [
          { path: "code", issue: expect.stringMatching(/^SandboxLost: The sandbox is gone: .+\.$/) as string, received_type: "string" },
        ],
        hints: ["Call again. Sluice opens a new sandbox, and the result says what happened to the variables."],
        retryable: true,
      });
      expect(lost).toEqual({
        ...failedCell,
        outcome: outcome({ status: "sandbox_lost", stdout: "begun\n", error: { type: "SandboxLost", message } }),
        error: toolError,
      });
      expect(read(lost)).toEqual({
        status: "sandbox_lost",
        error: toolError,
        stdout: "begun\n",
        survives: "The sandbox was lost. The next call says whether the earlier variables could be restored.",
      });
      expect(await value("kept")).toBe(4);
    });

    test("when all sandboxes are busy while a lost one is replaced, an abort ends the wait, and an edit that never ran undoes nothing", async () => {
      await run("kept = 4");
      await run("kept = 5");
      const takeAgain = takeLease;
      const busy = Promise.withResolvers<void>();
      takeLease = async (pool, signal) => {
        await busy.promise;
        return await takeAgain(pool, signal);
      };
      const own = { ...turn, onOutput: () => void leases.at(-1)!.close() };
      expect((await runCodeInterpreter(own, call("print('begun', flush=True)\nwhile True: pass"))).outcome?.status).toBe("sandbox_lost");
      turn.last = { call: call("kept = 5") as CodeInterpreterCall, isCommitted: true };
      for (const give of [runCodeInterpreter, runPythonCodeEdit]) {
        const stop = new AbortController();
        const input = give === runCodeInterpreter ? call("kept") : { edits: [{ oldText: "5", newText: "6" }] };
        const waiting = give(turn, input, { signal: stop.signal });
        setTimeout(() => stop.abort(new Error("enough")), 100);
        await expect(waiting).rejects.toThrow("enough");
      }
      busy.resolve();
      takeLease = takeAgain;
      const next = await run("kept");
      expect([next.outcome?.resultJson, read(next)["notes"]]).toEqual(["5", [implicit, replayed(2)]]);
    });

    test("an abort during a replay closes the new sandbox, and the cells stay committed", async () => {
      await run("kept = 4");
      const takeAgain = takeLease;
      const stop = new AbortController();
      takeLease = async (pool, signal) => {
        const taken = await takeAgain(pool, signal);
        const resetPeak: Lease["resetPeak"] = () => {
          stop.abort(new Error("enough"));
          return taken.lease.resetPeak();
        };
        return { ...taken, lease: withReplaced(taken.lease, { resetPeak }) };
      };
      await leases[0]!.close();
      await expect(run("kept", {}, stop.signal)).rejects.toThrow("enough");
      takeLease = takeAgain;
      expect((await leases[1]!.died).cause).toBe("closed");
      expect(await value("kept")).toBe(4);
    });

    test("when it is lost and a file has changed, the cells are not replayed on the new content, and the notes say both", async () => {
      const sales = addChangingFile("sales", "a\n1\n");
      await run("kept = int(sales['a'].sum())", { aliases: ["sales"] });
      sales.text = "a\n20\n";
      await leases.at(-1)!.close();
      const next = await run("['kept' in globals(), int(sales['a'].sum())]", { aliases: ["sales"] });
      expect([next.outcome?.resultJson?.replaceAll(" ", ""), read(next)["notes"]]).toEqual([
        "[false,20]",
        [
          implicit,
          lostNote(1, "the sandbox was lost, and an input of the earlier cells has changed since"),
          "Changed on disk since an earlier cell used them: sales (now 5 bytes). This cell had the new content; variables of earlier cells still hold values from the old content.",
        ],
      ]);
    });

    test("a file that changes while the sandbox lives is sent again, and the last cell can still be edited", async () => {
      const sales = addChangingFile("sales", "a\n1\n");
      await run("kept = 1\nold = int(sales['a'].sum())", { aliases: ["sales"] });
      sales.text = "a\n2\n";
      expect(await value("kept += 1\n[kept, old, int(sales['a'].sum())]", { aliases: ["sales"] })).toEqual([2, 1, 2]);
      const edited = await edit("kept += 1", "kept += 10");
      expect(JSON.parse(edited.outcome!.resultJson!)).toEqual([11, 1, 2]);
    });

    test("inputs.json has the inputs of the call, in an edit too, and the given files that the call names", async () => {
      addChangingFile("sales", "a\n1\n");
      addChangingFile("unnamed", "a\n1\n");
      const code = "import json\nprices = json.load(open('/vercel/sandbox/inputs.json'))\nset_result(prices.keys())";
      expect(await value(code, { aliases: ["sales"], inputs: { local: "get_price_1" } })).toEqual(["get_price_1", "local", "sales"]);
      const edited = await edit("prices.keys()", "prices['sales']");
      expect(edited.outcome?.resultJson).toBe('[{"a":1}]');
    });

    test("a changed file that only a failed cell had read is reported as changed, and the variables are kept", async () => {
      const sales = addChangingFile("sales", "a\n1\n");
      await run("kept = 4");
      await run("1 / int(sales['a'].sum() - 1)", { aliases: ["sales"] });
      sales.text = "a\n2\n";
      const next = await run("[kept, int(sales['a'].sum())]", { aliases: ["sales"] });
      expect(next.outcome?.resultJson?.replaceAll(" ", "")).toBe("[4,2]");
      expect(next.outcome?.diagnostics["inputsChanged"]).toEqual([{ alias: "sales", bytes: 4 }]);
    });

    test("is not opened for a call whose inputs are too large or missing", async () => {
      ownLimits = { inputBytes: 10 };
      const large = await run("len(get_price_1)");
      expect(large.error?.summary).toBe("Inputs have 63 bytes with get_price_1, 10 are allowed.");
      expect(leases).toEqual([]);
    });

    test("is closed by disposal even if a cell runs, and later calls are refused", async () => {
      const running = run("while True: pass");
      await wait(300);
      await disposeTurnSandbox(turn);
      await disposeTurnSandbox(turn);
      expect((await running).error).not.toBeNull();
      expect(await run("1")).toEqual({
        ...refusal,
        error: failure({
          ...{ error_kind: "internal_error", error_code: "INTERNAL_ERROR", summary: "The turn turn-1 is over." },
          hints: ["Create a new turn."],
        }),
      });
    });
  });

  describe("its results and artifacts", () => {
    test("a figure is checked, stored under its hash, and summarized with its numbers", async () => {
      const answer = await run(`${figure()}\nset_result(3)`, { artifacts: ["image"], operation: "chart" });
      const [image] = answer.artifacts;
      expect(image).toEqual({
        schemaVersion: 1,
        kind: "image",
        alt: "A line that rises from one to three",
        url: `sluice://artifacts/${image!.contentHash}`,
        contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        bytes: expect.any(Number),
        width: expect.any(Number),
        height: expect.any(Number),
        figure: {
          schemaVersion: 2,
          axes: [
            {
              title: "Price",
              x: { scale: "linear" },
              y: { scale: "linear" },
              series: [{ type: "line", label: "price", x: [1, 2, 3], y: [1, 2, 3] }],
              unread: [],
            },
          ],
        },
        figureData: { contentHash: expect.stringMatching(/^[0-9a-f]{64}$/), url: expect.any(String), bytes: expect.any(Number) },
      });
      const { figure: drawn, figureData } = image as ImageArtifact;
      const data = (await artifacts.get(figureData!.contentHash, "json"))!;
      expect([JSON.parse(Buffer.from(data).toString()), data.length]).toEqual([drawn, figureData!.bytes]);
      const kept = (await artifacts.get(image!.contentHash, "png"))!;
      expect(createHash("sha256").update(kept).digest("hex")).toBe(image!.contentHash);
      expect(read(answer)).toEqual({
        status: "ok",
        resultAlias: "result_1",
        result: 3,
        artifacts: [
          {
            kind: "image",
            url: image!.url,
            contentHash: image!.contentHash,
            alt: "A line that rises from one to three",
            width: expect.any(Number),
            height: expect.any(Number),
            figure: [{ title: "Price", series: [{ type: "line", label: "price", points: 3, from: 1, to: 3, min: 1, max: 3, last: 3 }] }],
          },
        ],
        survives: "Variables and files of this cell are available in the next cell of this turn.",
      });
    });

    test("the same figure in another turn has the same hash", async () => {
      const [first, second] = [await run(figure(), { artifacts: ["image"] }), await run(figure(), { artifacts: ["image"] })];
      expect(second.artifacts[0]?.contentHash).toBe(first.artifacts[0]?.contentHash);
    });

    test("a chart is stored with its spec and rows", async () => {
      const code = 'render_chart({"type": "bar", "xKey": "day", "series": [{"key": "price"}]}, get_price_1, title="Prices")';
      const answer = await run(code, { artifacts: ["chart"], operation: "chart" });
      const [chart] = answer.artifacts;
      const spec = { type: "bar", xKey: "day", series: [{ key: "price" }] };
      const data = [
        { day: "2026-01-01", price: 1 },
        { day: "2026-01-02", price: 3 },
      ];
      expect(chart).toEqual({
        schemaVersion: 1,
        kind: "chart",
        title: "Prices",
        url: `sluice://artifacts/${chart!.contentHash}`,
        contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        bytes: Buffer.byteLength((await artifacts.get(chart!.contentHash, "json"))!),
        spec,
        data,
      });
      const { kind, url, contentHash } = chart!;
      expect(read(answer)["artifacts"]).toEqual([{ kind, url, contentHash, title: "Prices", type: "bar", rows: 2, series: ["price"] }]);
      expect(JSON.parse(Buffer.from((await artifacts.get(contentHash, "json"))!).toString())).toEqual({ spec, data });
    });

    test.each([
      ["declared and not emitted", "set_result(1)", ["image"] as const, "no artifact. Call save_figure(alt)."],
      ["emitted and not declared", figure(), [] as const, "image. Declare what is emitted, or do not emit it."],
      ["of another kind than declared", figure(), ["chart"] as const, "image. Call render_chart(spec, data)."],
    ])(
      "an artifact that is %s breaks the contract: nothing is published, and the state does not change",
      async (_, code, declared, emitted) => {
        await run("kept = 1");
        const answer = await run(`kept = 2\n${code}`, { artifacts: [...declared] });
        const message = `the call declared ${declared[0] ?? "no artifact"} and emitted ${emitted}`;
        const because = `ArtifactsNotAsDeclared: ${message}`;
        const violation = failure({
          error_code: "CONTRACT_VIOLATION",
          summary: because,
          details: [{ path: "code", issue: because, received_type: "string" }],
          hints: [
            "Emit exactly the artifacts that expectedArtifacts declares, or change the declaration. Nothing of this cell was published.",
            editHint,
          ],
        });
        expect(toolErrorOf(answer)).toEqual(violation);
        expect(answer).toEqual({
          ...failedCell,
          outcome: outcome({
            status: "contract_violation",
            diagnostics: expect.any(Object) as Record<string, unknown>,
            error: { type: "ArtifactsNotAsDeclared", message },
          }),
          error: violation,
          repair: { tool: "python_code_edit", because },
        });
        expect(evidence.aliases()).toEqual(["get_price_1"]);
        expect(await value("kept")).toBe(1);
      },
    );

    test.each([
      [
        "image",
        "is shown as blank by its pixels alone",
        `${whiteFigure}\nsave_figure(alt='White on white, a line')`,
        "an image is blank: nothing visible was drawn",
      ],
      ["image", "is no PNG", put("image", "{'alt': 'A line that rises'}", "b'GIF89a' * 20"), "an image is not a PNG"],
      ["image", "is cut short", put("image", "{'alt': 'A line that rises'}", "png[:-20]"), "an image is a damaged PNG"],
      [
        "image",
        "has a wrong checksum",
        put("image", "{'alt': 'A line that rises'}", "png[:40] + bytes([png[40] ^ 1]) + png[41:]"),
        "an image is a damaged PNG",
      ],
      [
        "image",
        "would be huge",
        put("image", "{'alt': 'A line that rises'}", "png[:16] + huge + struct.pack('>I', zlib.crc32(b'IHDR' + huge)) + png[33:]"),
        "an image has 100000 x 100000 pixels, at most 50000000 pixels are allowed",
      ],
      ["image", "has no alt", put("image", "{}", "png"), "an image has no alt text that says what it shows"],
      [
        "image",
        "has a file name as its alt",
        put("image", "{'alt': 'picture_of_prices.png'}", "png"),
        "an image has no alt text that says what it shows",
      ],
      [
        "image",
        "has a title without end",
        put("image", "{'alt': 'A line that rises', 'title': 't' * 501}", "png"),
        "the title of the image has 501 characters, 500 are allowed",
      ],
      [
        "image",
        "comes with numbers that are none",
        put("image", "{'alt': 'A line that rises'}", "png", "b'[1]'"),
        "the data behind an image does not match the schema",
      ],
      ["chart", "is no JSON", put("chart", "{}", "b'<svg>'"), "the spec or the rows of a chart do not match the schema"],
      [
        "chart",
        "has a spec that does not fit its rows",
        put("chart", "{}", `b'{"spec": {"type": "bar", "xKey": "day", "series": [{"key": "n"}]}, "data": [{"day": "a", "m": 1}]}'`),
        "a chart is wrong at series[0].key: n is not in the data; the columns are day, m",
      ],
    ] as const)("the host checks each %s: one that %s breaks the contract, and nothing is published", async (kind, _, code, why) => {
      const answer = await run(code, { artifacts: [kind] });
      const message = `An artifact of the cell was rejected: ${why}.`;
      const because = `ArtifactRefused: ${message}`;
      expect(answer).toEqual({
        ...failedCell,
        outcome: outcome({
          status: "contract_violation",
          diagnostics: expect.any(Object) as Record<string, unknown>,
          error: { type: "ArtifactRefused", message },
        }),
        error: failure({
          error_code: "CONTRACT_VIOLATION",
          summary: because,
          details: [{ path: "code", issue: because, received_type: "string" }],
          hints: ["Fix the artifact that the summary names. Nothing of this cell was published.", editHint],
        }),
        repair: { tool: "python_code_edit", because },
      });
      expect(evidence.aliases()).toEqual(["get_price_1"]);
    });

    test("a blank figure is rejected, and nothing of the cell is published", async () => {
      const blank = "plt.figure()\nsave_figure(alt='A figure on which nothing is drawn')";
      const answer = await run(`${figure()}\n${blank}`, { artifacts: ["image"] });
      const because = "FigureError: the figure is empty: none of its axes shows a value; plot something before save_figure";
      const line = "save_figure(alt='A figure on which nothing is drawn')";
      const traceback = `Traceback (most recent call last):\n  File "<cell 1>", line 6, in <module>\n    ${line}\n    ~~~~~~~~~~~${"^".repeat(line.length - 11)}\nsluice.errors.${because}\n`;
      const place = { line: 6, column: 1, traceback };
      const empty = failure({
        error_code: "PYTHON_ERROR",
        summary: `${because} (line 6)`,
        details: [{ path: "code", issue: because, received_type: "string", ...place }],
        hints: [editHint],
      });
      expect(answer).toEqual({
        ...failedCell,
        outcome: outcome({
          status: "python_error",
          diagnostics: expect.any(Object) as Record<string, unknown>,
          error: { type: "FigureError", message: because.slice("FigureError: ".length), ...place },
        }),
        error: empty,
        repair: { tool: "python_code_edit", because },
      });
    });

    test("a large result becomes a preview and an alias for later cells and charts", async () => {
      const answer = await run("set_result([{'day': f'2026-01-{1 + n % 28:02d}', 'n': n} for n in range(3000)])");
      const text = answer.text;
      expect(text.length).toBeLessThan(6_000);
      expect(JSON.parse(text)).toEqual({
        status: "ok",
        resultAlias: "result_1",
        resultPreview: JSON.parse(evidence.preview("result_1").json) as unknown,
        survives: "Variables and files of this cell are available in the next cell of this turn.",
      });
      expect(evidence.get("result_1")!.shape).toEqual({
        kind: "records",
        rows: 3000,
        columns: ["day", "n"],
        columnCount: 2,
        columnsFromSample: false,
        path: [],
      });
      expect(await value("len(result_1)", { aliases: ["result_1"] })).toBe(3000);
      const spec = { type: "scatter", xKey: "n", series: [{ key: "n" }] };
      const chart = await renderChart({ input: { alias: "result_1", spec }, evidence, artifacts });
      if (!chart.ok) throw new Error(chart.toolError.summary);
      expect(chart.artifact.data).toEqual(Array.from({ length: 3000 }, (_, n) => ({ n })));
    });

    test("long output is cut to its budget, with a count of what is omitted", async () => {
      const shown = read(await run("print('x' * 50_000)\nimport sys\nprint('y' * 9_000, file=sys.stderr)"));
      expect(shown["stdout"]).toMatch(/^x{2048}\n… \[45905 characters of stdout are not shown here\] …\nx+\n$/);
      expect(shown["stderr"]).toMatch(/characters of stderr are not shown here/);
    });

    test("diagnostics become sentences that a model can act on", async () => {
      expect(read(await run("plt.plot([1, 2])\nplt.show()\n[float('nan'), 1.5]"))).toEqual({
        status: "ok",
        resultAlias: "result_1",
        result: [null, 1.5],
        notes: [
          "NaN or infinite values became null in the result: $[*] (1).",
          "The value of the last expression was used as the result. Call set_result(value) to be explicit.",
          "1 figure(s) were drawn but not saved: call save_figure(alt).",
          "plt.show() shows nothing here: call save_figure(alt).",
        ],
        survives: "Variables and files of this cell are available in the next cell of this turn.",
      });
    });

    test("notes that code forges are left out, and the call still succeeds", async () => {
      const forge = 'from sluice import _cell\n_cell.current().note("nonFinite", None)\n_cell.current().note("sandboxReplaced", 1)\n1';
      expect(read(await run(forge))).toMatchObject({
        status: "ok",
        result: 1,
        notes: [
          "The value of the last expression was used as the result. Call set_result(value) to be explicit.",
          'The cell sent notes that are not in their expected form. They were left out: ["nonFinite","sandboxReplaced"].',
        ],
      });
    });

    test("a failure has its cause, its line, what survives and what to do", async () => {
      const answer = await run("rows = get_price_1\nrows[0]['prize']");
      expect(toolErrorOf(answer)).toEqual({
        error_kind: "sandbox_runtime",
        tool: "code_interpreter",
        summary: "KeyError: 'prize' (line 2)",
        details: [
          {
            path: "code",
            issue: "KeyError: 'prize'",
            received_type: "string",
            line: 2,
            column: 1,
            traceback:
              "Traceback (most recent call last):\n  File \"<cell 1>\", line 2, in <module>\n    rows[0]['prize']\n    ~~~~~~~^^^^^^^^^\nKeyError: 'prize'\n",
          },
        ],
        hints: ["Fix it with python_code_edit: variables are as they were before this cell."],
        examples: [],
        error_code: "PYTHON_ERROR",
        retryable: false,
        _envelope_version: 1,
      });
      expect(answer.repair).toEqual({ tool: "python_code_edit", because: "KeyError: 'prize'" });
      expect(read(answer)).toEqual({
        status: "python_error",
        error: answer.error,
        repair: { tool: "python_code_edit", because: "KeyError: 'prize'" },
        survives: "Nothing of this cell. Variables are as they were before it. Files that it changed may remain.",
      });
    });

    test.each([
      {
        status: "timeout",
        code: "while True: pass",
        summary: "The cell exceeded its time limit of 3 s and was stopped. Compute less, vectorise loops, or work on an aggregate.",
        type: "Timeout",
        measured: / \[cellTimeoutMs: \d+ seen, 3000 allowed\]$/,
        hint: "Vectorize loops or work on an aggregate. The time limit applies to the cell's own code.",
      },
      {
        status: "out_of_memory",
        code: "raise MemoryError('too much')",
        summary: /^too much: the limit is 2048 MB, the peak was \d+ MB\.$/,
        type: "MemoryError",
        measured: / \[memoryBytes: \d+ seen, 2147483648 allowed\]$/,
        hint: "Make fewer copies, select columns early, or aggregate before joining.",
        place: { line: 1, column: 1, traceback: inCell("raise MemoryError('too much')", "MemoryError: too much") },
      },
      {
        status: "output_limit",
        code: "set_result('x' * 2000)",
        summary: overLimit,
        type: "OutputLimitError",
        measured: / \[resultBytes: 2002 seen, 1000 allowed\]$/,
        hint: "Return an aggregate or fewer artifacts. The full data stays available under its alias.",
        place: {
          line: 1,
          column: 1,
          traceback: inCell("set_result('x' * 2000)\n    ~~~~~~~~~~^^^^^^^^^^^^", `sluice.errors.OutputLimitError: ${overLimit}`),
        },
      },
      {
        status: "crashed",
        code: "import os\nos._exit(3)",
        summary:
          "The process that ran the cell exited with status 3 (os._exit, or its channel was closed). Variables are as they were before the cell.",
        type: "Crashed",
        measured: /cell\.$/,
        hint: "Do not use os._exit, ctypes or signals, and use less memory at a time.",
      },
    ])(
      "a cell that ends as $status is reported with the measured limit",
      async ({ status, code, summary, type, measured, hint, place }) => {
        ownLimits = status === "timeout" ? { cellTimeoutMs: 3000 } : { resultBytes: 1000 };
        await run("kept = 1");
        const answer = await run(code);
        const { summary: said, details } = answer.error!;
        const because = `${type}: ${said}`;
        expect([answer.outcome?.status, answer.repair]).toEqual([status, { tool: "python_code_edit", because }]);
        expect(said).toEqual(typeof summary === "string" ? summary : expect.stringMatching(summary));
        expect(details[0]?.issue).toMatch(measured);
        expect(details[0]?.issue.replace(/ \[\w+: \d+ seen, \d+ allowed\]$/, "")).toBe(because);
        expect(toolErrorOf(answer)).toEqual(
          failure({
            error_code: `PYTHON_${status.toUpperCase()}`,
            summary: said,
            details: [{ path: "code", issue: details[0]!.issue, received_type: "string", ...place }],
            hints: [hint, editHint],
          }),
        );
        expect(await value("kept")).toBe(1);
      },
    );

    test("an exception with a very long name fails the cell, not the sandbox", async () => {
      const answer = await run("raise type('E' * 600, (Exception,), {})('it')");
      const name = `${"E".repeat(499)}…`;
      expect([answer.outcome?.status, answer.error?.summary]).toEqual(["python_error", `${name}: it (line 1)`]);
    });

    test("if an artifact cannot be stored, the call fails, but the result is stored", async () => {
      const full = {
        ...artifacts,
        put: () => Promise.reject(new SluiceError({ code: "STORAGE_UNAVAILABLE", message: "The disk is full." })),
      };
      const answer = await runCodeInterpreter({ ...turn, artifacts: full }, call(`${figure()}\nset_result(7)`, { artifacts: ["image"] }));
      expect(answer).toEqual({
        ...failedCell,
        outcome: outcome({ resultJson: "7", artifacts: [expect.objectContaining({ kind: "image" })] as never }),
        aliases: ["result_1"],
        resultAlias: "result_1",
        error: failure({
          error_kind: "internal_error",
          error_code: "STORAGE_UNAVAILABLE",
          summary: "The disk is full.",
          retryable: true,
        }),
      });
    });
  });

  describe("a cell with several artifacts", () => {
    test("keeps those that fit when another one does not", async () => {
      let pictures = 0;
      const almostFull: ArtifactStore = {
        ...artifacts,
        put: async (content) => {
          if (content.type === "png" && (pictures += 1) === 2)
            throw new SluiceError({ code: "CONVERSATION_FULL", message: "The artifact has 5 bytes." });
          return await artifacts.put(content);
        },
      };
      const alts = ["first", "second", "third"].map((place) => figure(`The ${place} of three rising lines`));
      const code = `${alts.join("\n")}\nset_result(7)`;
      const answer = await runCodeInterpreter({ ...turn, artifacts: almostFull }, call(code, { artifacts: ["image"] }));
      expect([answer.artifacts.length, answer.error?.error_code, answer.resultAlias]).toEqual([2, "CONVERSATION_FULL", "result_1"]);
    });
  });

  describe("python_code_edit", () => {
    test("that is aborted after the last cell was undone leaves the state before it, and the next result says so once", async () => {
      const undone =
        "The previous cell was undone for an edit that was aborted before it ran. Variables are as they were before that cell.";
      const abortEdit = async (): Promise<void> => {
        const stop = new AbortController();
        const edits = [{ oldText: "kept = 2", newText: "kept = 3\nprint('begun', flush=True)\nwhile True: pass" }];
        const editing = runPythonCodeEdit(turn, { edits }, { signal: stop.signal, onOutput: () => stop.abort(new Error("enough")) });
        await expect(editing).rejects.toThrow("enough");
      };
      await run("kept = 1");
      await run("kept = 2");
      await abortEdit();
      const next = await run("kept");
      expect(next.outcome?.resultJson).toBe("1");
      expect(read(next)["notes"]).toContain(undone);
      expect(read(await run("kept"))["notes"]).not.toContain(undone);

      await run("kept = 2");
      await abortEdit();
      const again = await edit("kept = 2", "kept = 4\nkept");
      expect(again.outcome?.resultJson).toBe("4");
      expect(read(again)["notes"]).not.toContain(undone);
      expect(read(await run("kept"))["notes"]).not.toContain(undone);
    });

    test("fixes a failed cell and runs it from the state before it", async () => {
      await run("total = 1");
      await run("total += 10\nset_result(totl)");
      const answer = await edit("totl", "total");
      const diagnostics = driver === "gvisor" ? { sandboxReplaced: { variables: "replayed", cells: 1 } } : {};
      expect(answer).toEqual({
        ...refusal,
        status: "ok",
        outcome: outcome({ resultJson: "11", diagnostics }),
        error: null,
        aliases: ["result_1"],
        resultAlias: "result_1",
      });
    });

    test("undoes a successful cell before it runs the edited code", async () => {
      await run("total = 1");
      expect(await value("total += 10\nset_result(total)")).toBe(11);
      expect((await edit("10", "100")).outcome?.resultJson).toBe("101");
      expect((await edit("100", "1000")).outcome?.resultJson).toBe("1001");
      expect(await value("total")).toBe(1001);
    });

    test("undoes the first cell of a turn too", async () => {
      await run("box = globals().get('box', 0) + 1\nset_result(box)");
      expect((await edit("+ 1", "+ 5")).outcome?.resultJson).toBe("5");
    });

    test("says that the last cell was undone if no sandbox is available for the new one, and the same edit can be sent again", async () => {
      await run("total = 1");
      await run("total += 10\nset_result(total)");
      const takeAgain = takeLease;
      takeLease = () =>
        Promise.reject(
          new NoSandboxError({ code: "SANDBOX_QUEUE_TIMEOUT", message: "All sandboxes are busy.", hint: "Try again in a moment." }),
        );
      await leases.at(-1)!.close();
      expect(await edit("10", "100")).toEqual({
        ...refusal,
        error: failure({
          error_kind: "rate_limited",
          tool: "python_code_edit",
          error_code: "QUEUE_FULL",
          summary: "All sandboxes are busy.",
          hints: [
            "Try again in a moment.",
            "The last cell was undone, but its replacement was not run: variables are as they were before it. Send the same edit again to run the whole cell.",
          ],
          retryable: true,
        }),
      });
      takeLease = takeAgain;
      expect((await edit("10", "100")).outcome?.resultJson).toBe("101");
    });

    test("can have a new contract", async () => {
      await run(figure());
      const postProcessingContract = {
        operation: "chart",
        reason: "It draws.",
        inputAliases: ["get_price_1"],
        expectedArtifacts: ["image"],
      };
      const answer = await edit("Price", "Prices", { postProcessingContract });
      expect([answer.error, answer.artifacts.map(({ kind }) => kind)]).toEqual([null, ["image"]]);
    });

    test("text that does not occur exactly once is refused with the nearest lines, and nothing is run", async () => {
      await run("a = 1\nb = to_frame(get_price_1)\nc = b['price'].sum()\nset_result(c)");
      expect(toolErrorOf(await edit("c = b['prize'].sum()", ""))).toEqual({
        error_kind: "mcp_input_validation",
        tool: "python_code_edit",
        summary: "Nothing was run: edits[0].oldText does not occur in the last cell's code.",
        details: [
          {
            path: "edits[0].oldText",
            issue:
              "It does not occur in the last cell's code. The nearest lines:\n2: b = to_frame(get_price_1)\n3: c = b['price'].sum()\n4: set_result(c)",
            received_type: "string",
          },
        ],
        hints: ["Copy the text exactly, with its spaces."],
        examples: [],
        error_code: "EDIT_TEXT_NOT_FOUND",
        retryable: false,
        _envelope_version: 1,
      });
      expect(await edit("b", "x")).toEqual({
        ...refusal,
        error: failure({
          error_kind: "mcp_input_validation",
          tool: "python_code_edit",
          error_code: "EDIT_TEXT_AMBIGUOUS",
          summary: "Nothing was run: edits[0].oldText occurs 2 times in the last cell's code.",
          details: [
            {
              path: "edits[0].oldText",
              issue:
                "It occurs 2 times in the last cell's code. The lines that contain it:\n2: b = to_frame(get_price_1)\n3: c = b['price'].sum()",
              received_type: "string",
            },
          ],
          hints: ["Include more of the surrounding lines, so that the text is unique."],
        }),
      });
      const twice = [
        { oldText: "a = 1", newText: "a = 2" },
        { oldText: "a = 1", newText: "a = 3" },
      ];
      const where = "does not occur in the last cell's code after the earlier edits";
      const near = "1: a = 2\n2: b = to_frame(get_price_1)";
      expect(await runPythonCodeEdit(turn, { edits: twice })).toEqual({
        ...refusal,
        error: failure({
          error_kind: "mcp_input_validation",
          tool: "python_code_edit",
          error_code: "EDIT_TEXT_NOT_FOUND",
          summary: `Nothing was run: edits[1].oldText ${where}.`,
          details: [{ path: "edits[1].oldText", issue: `It ${where}. The nearest lines:\n${near}`, received_type: "string" }],
          hints: ["Copy the text exactly, with its spaces."],
        }),
      });
      expect(await value("[a, c]")).toEqual([1, 4]);
    });

    test("needs an earlier cell, a well-formed call, and valid code", async () => {
      const wrong = { error_kind: "mcp_input_validation", tool: "python_code_edit" } as const;
      expect(await edit("a", "b")).toEqual({
        ...refusal,
        error: failure({
          error_kind: "precondition_failed",
          tool: "python_code_edit",
          error_code: "NO_CELL_TO_EDIT",
          summary: "No cell has been run in this turn, so there is nothing to edit.",
          hints: ["Call code_interpreter first."],
        }),
      });
      await run("a = 1");
      expect(await runPythonCodeEdit(turn, { edits: [] })).toEqual({
        ...refusal,
        error: failure({
          ...wrong,
          error_code: "INPUT_VALIDATION_FAILED",
          summary: "The call was not run. edits must not be empty.",
          details: [{ path: "edits", issue: "edits must not be empty.", received_type: "array", error_code: "SCHEMA_MIN_ITEMS" }],
          examples: [{ edits: [{ oldText: "df.sum()", newText: "df.mean()" }] }],
        }),
      });
      expect(await edit("a = 1", "for")).toEqual({
        ...refusal,
        error: {
          ...notPython,
          tool: "python_code_edit",
          hints: ["Line and column numbers refer to the edited code. The code of the last cell has not changed."],
          examples: [{ edits: [{ oldText: "df.sum()", newText: "df.mean()" }] }],
        },
      });
      const unknown = call("a = 2", { aliases: ["get_prize_1"] }) as { postProcessingContract: object };
      const { postProcessingContract } = call("a = 2") as { postProcessingContract: object };
      expect(await edit("1", "2", { postProcessingContract: unknown.postProcessingContract })).toEqual({
        ...refusal,
        error: {
          ...unknownAlias,
          tool: "python_code_edit",
          examples: [{ edits: [{ oldText: "1", newText: "2" }], postProcessingContract }],
        },
      });
      expect(await value("a")).toBe(1);
    });
  });

  test("a sparse line asks for a repair even if the cell succeeded", async () => {
    const code = `days = pd.to_datetime([f"2026-01-{n:02d}" for n in range(1, 29)])
values = [float(n) if n < 3 or n == 28 else None for n in range(1, 29)]
fig, ax = plt.subplots()
ax.plot(days, values, label="thin", marker="o")
fig.autofmt_xdate()
ax.set_title("Thin")
save_figure(alt="A line with most of its points missing")`;
    const answer = await run(code, { artifacts: ["image"] });
    expect([answer.error, answer.outcome?.status, answer.repair]).toEqual([
      null,
      "ok",
      { tool: "python_code_edit", because: 'The figure is sparse: "thin" has 3 of 28 expected points.' },
    ]);
    expect(read(answer)).toEqual({
      status: "ok",
      repair: answer.repair,
      artifacts: expect.any(Array),
      notes: [
        "Plotted series are sparse: thin has 3 of 28 points of its own index, largest gap 26D. Align the series first, fill from the source, or, if a series is sparse by design, pass its cadence to save_figure or render_chart.",
      ],
      survives: "Variables and files of this cell are available in the next cell of this turn.",
    });
  });

  test("every call emits probes with its boot and its end", async () => {
    await run("1");
    await run("1 / 0");
    const parsed = probes.map((line) => parseProbe(line)!);
    expect(parsed.map(({ source }) => source)).toEqual(Array.from({ length: 4 }, () => "python-sandbox-latency-probe"));
    expect(parsed.map(({ fields }) => fields["event"])).toEqual([
      "python_call_start",
      "python_call_success",
      "python_call_start",
      "python_call_failure",
    ]);
    expect(parsed[0]!.fields).toEqual({
      event: "python_call_start",
      turnId: "turn-1",
      inputsBytes: evidence.get("get_price_1")!.bytes,
      codeBytes: 1,
      inputAliasCount: 1,
      sandboxId: expect.any(String),
      boot: expect.stringMatching(/^(cold|warm)$/),
    });
    const measured = {
      turnId: "turn-1",
      sandboxId: parsed[0]!.fields["sandboxId"],
      driver,
      start: expect.any(String),
      ...Object.fromEntries(
        ["queueMs", "startMs", "runMs", "totalMs", "peakMemoryBytes", "cpuMs"].map((name) => [name, expect.any(Number)]),
      ),
    };
    expect(parsed[1]!.fields).toEqual({
      event: "python_call_success",
      stdoutChars: 0,
      artifactCount: 0,
      imageCount: 0,
      chartCount: 0,
      boot: parsed[0]!.fields["boot"],
      ...measured,
    });
    expect(parsed[3]!.fields).toEqual({
      event: "python_call_failure",
      stage: "run",
      status: "python_error",
      exitCode: null,
      error: "ZeroDivisionError: division by zero",
      boot: "warm",
      ...measured,
    });
  });

  test("a call that runs no cell emits one probe with its stage and the reason", async () => {
    const noSandbox = new NoSandboxError({ code: "SANDBOX_QUEUE_TIMEOUT", message: "All sandboxes are busy.", hint: "Wait." });
    const refusing = { ...turn, source: { ...turn.source, openCellSession: () => Promise.reject(noSandbox) } };
    await runCodeInterpreter(turn, {});
    await run("for");
    await edit("a", "b");
    await runCodeInterpreter(refusing, call("1"));
    await expect(run("1", {}, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
    const shared = { event: "python_call_failure", turnId: "turn-1", exitCode: null };
    expect(probes.map((line) => parseProbe(line)!.fields)).toEqual([
      { ...shared, stage: "contract", status: "SCHEMA_REQUIRED", error: "The call was not run. code is missing. And 1 more problem." },
      {
        ...shared,
        stage: "contract",
        status: "PYTHON_SYNTAX_ERROR",
        error: notPython.summary,
      },
      {
        ...shared,
        stage: "contract",
        status: "NO_CELL_TO_EDIT",
        error: "No cell has been run in this turn, so there is nothing to edit.",
      },
      { ...shared, stage: "start", status: "QUEUE_FULL", error: "All sandboxes are busy." },
      { ...shared, stage: "queue", status: "aborted", error: "enough" },
    ]);
    const deaf = {
      ...turn,
      onProbe: () => {
        throw new Error("sink");
      },
    };
    expect(await runCodeInterpreter(deaf, {})).toEqual({ ...refusal, error: twoMissing });
    expect(leases).toEqual([]);
    expect((await runCodeInterpreter(deaf, call("1 + 1"))).outcome?.resultJson).toBe("2");
    const full = {
      ...deaf,
      sandbox: null,
      source: {
        ...turn.source,
        openCellSession: () => Promise.reject(new SluiceError({ code: "QUEUE_FULL", message: "All sandboxes are busy." })),
      },
    };
    expect((await runCodeInterpreter(full, call("1"))).error?.error_code).toBe("QUEUE_FULL");
  });

  test("records spans if a provider is registered, and works the same without one", async () => {
    const spans: RecordedSpan[] = [];
    trace.setGlobalTracerProvider(createRecorder(spans));
    try {
      await run("1");
      await run("1 / 0");
      await runCodeInterpreter(turn, {});
      await edit("1 / 0", "2");
      const { tools } = await createCodeInterpreterTools(runtime, turn);
      const draw = tools.render_chart.execute as (input: unknown, options: unknown) => Promise<unknown>;
      await draw({ alias: "get_price_1", spec: { type: "line", xKey: "day", series: [{ key: "price" }] } }, {});
      await draw({ alias: "get_prices_1" }, {});
      const stop = AbortSignal.abort(new Error("enough"));
      await expect(run("1", {}, stop)).rejects.toThrow("enough");
    } finally {
      trace.disable();
    }
    await run("1");
    expect(spans.map(({ name, attributes, status, ended }) => [name, attributes["sluice.status"], status, ended])).toEqual([
      ["sluice.code_interpreter", "ok", undefined, true],
      ["sluice.code_interpreter", "python_error", "PYTHON_ERROR", true],
      ["sluice.code_interpreter", "refused", "SCHEMA_REQUIRED", true],
      ["sluice.python_code_edit", "ok", undefined, true],
      ["sluice.render_chart", "ok", undefined, true],
      ["sluice.render_chart", "refused", "CHART_INVALID", true],
      ["sluice.code_interpreter", undefined, "enough", true],
    ]);
    expect(spans[0]!.attributes).toEqual({
      "sluice.turn": "turn-1",
      "sluice.status": "ok",
      "sluice.artifacts": 0,
      "sluice.sandbox": expect.any(String),
      "sluice.start": expect.any(String),
      "sluice.run_ms": expect.any(Number),
    });
    expect([spans[2]!.attributes, spans[4]!.attributes]).toEqual([
      { "sluice.turn": "turn-1", "sluice.status": "refused", "sluice.artifacts": 0 },
      { "sluice.turn": "turn-1", "sluice.status": "ok" },
    ]);
  });
});

interface RecordedSpan {
  name: string;
  attributes: Record<string, unknown>;
  status?: string | undefined;
  ended: boolean;
}

/** A minimal trace provider. */
function createRecorder(spans: RecordedSpan[]): TracerProvider {
  const startSpan = (name: string, options?: { attributes?: Attributes }): Span => {
    const span: RecordedSpan = { name, attributes: { ...options?.attributes }, ended: false };
    spans.push(span);
    const recorder = {
      setAttributes: (more: Attributes) => Object.assign(span.attributes, more),
      setStatus: ({ message }: { message?: string }) => (span.status = message),
      end: () => (span.ended = true),
    };
    return recorder as unknown as Span;
  };
  const startActiveSpan = (name: string, options: { attributes?: Attributes }, work: (span: Span) => unknown): unknown =>
    work(startSpan(name, options));
  return { getTracer: () => ({ startSpan, startActiveSpan }) as unknown as Tracer };
}

/** The same object with some members replaced, also if its class has private members. */
function withReplaced<Target extends object>(target: Target, replaced: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Object.hasOwn(replaced, key) ? replaced[key as keyof Target] : Reflect.get(target, key);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

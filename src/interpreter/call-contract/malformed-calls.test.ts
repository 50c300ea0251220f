import { readdir, readFile } from "node:fs/promises";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { createMemoryStore } from "../../artifacts/artifact-store.ts";
import { toolErrorSchema, serializeToolError } from "../../errors/tool-error.ts";
import { createEvidenceStore } from "../../evidence/create-evidence-store.ts";
import { defaultLimits } from "../../sandbox/limits.ts";
import { runCodeInterpreter } from "../code-interpreter.ts";
import { createInterpreterTurn, type InterpreterTurn } from "../interpreter-turn.ts";
import { contractOperations } from "./code-interpreter-call.ts";
import { contextFacts } from "./fixtures/contract-context.ts";
import { createPythonParser } from "./python-parser.ts";
import { validateCodeInterpreterContract } from "./validate-code-interpreter-contract.ts";

const parser = createPythonParser();
const context = { ...contextFacts, parser };
afterAll(() => parser.close());

/** A turn with the evidence that the calls name, and without a sandbox. */
function createTurn(openCellSession: () => Promise<never>): InterpreterTurn {
  const evidence = createEvidenceStore();
  for (const _ of [1, 2]) evidence.add({ tool: "get_price", output: "[1, 2]" });
  evidence.addResult({ json: "3", from: "code_interpreter" });
  expect(evidence.aliases()).toEqual(contextFacts.aliases);
  const { helpers } = contextFacts;
  const source = { openCellSession, limits: defaultLimits, helpers: async () => helpers, parser };
  return createInterpreterTurn({ id: "turn-1", evidence, artifacts: createMemoryStore(), source });
}

type Call = Record<string, unknown> & { postProcessingContract: Record<string, unknown> };

const text = fc.string({ unit: "binary", maxLength: 40 });
const anything = fc.anything({
  withNullPrototype: true,
  withMap: true,
  withDate: true,
  withBigInt: true,
  withSparseArray: true,
  maxDepth: 3,
});
const validCall: fc.Arbitrary<Call> = fc.record({
  code: fc.constantFrom("set_result(1)", "df = to_frame(get_price_1)\nset_result(df)", "import numpy as np\nset_result(np.pi)"),
  postProcessingContract: fc.record({
    operation: fc.constantFrom(...contractOperations),
    reason: fc.constantFrom("Because.", "The user asked for a mean."),
    inputAliases: fc.subarray(["get_price_1", "get_price_2", "result_1"], { minLength: 1 }),
    expectedArtifacts: fc.subarray(["image", "chart"]),
  }),
});

const badCode = fc.oneof(
  fc.constantFrom("x = (", "return 1", "", "\0", "def f(:", "print 'a'", "await x", "f'{'", "match x:\ncase 1: pass"),
  text.map((part) => `x = (${part.replaceAll(/[)\]]/g, "")}`),
  text.map((part) => `${part}\nreturn 1\n`).filter((code) => !/['"]/.test(code)),
  anything.filter((value) => typeof value !== "string"),
);
const badAlias = fc.oneof(text, fc.constantFrom("get_price_11", "price", "__proto__", "constructor", "toString"));
const badName = fc.constantFrom(
  "class",
  "pd",
  "list",
  "a b",
  "1a",
  "",
  "__proto__",
  "set_result",
  "inputs",
  "ﬁ",
  "None",
  "get_price_1",
  "__class__",
);
const inContract = (name: string, bad: fc.Arbitrary<unknown>): fc.Arbitrary<(call: Call) => unknown> =>
  bad.map((value) => (call: Call) => ({ ...call, postProcessingContract: { ...call.postProcessingContract, [name]: value } }));
const without =
  (name: string): ((call: Call) => unknown) =>
  (call) => ({
    ...call,
    postProcessingContract: Object.fromEntries(Object.entries(call.postProcessingContract).filter(([key]) => key !== name)),
  });

/** Each of these makes a valid call invalid. */
const breakage: fc.Arbitrary<(call: Call) => unknown> = fc.oneof(
  badCode.map((code) => (call: Call) => ({ ...call, code })),
  inContract("operation", fc.oneof(text, anything)),
  inContract(
    "reason",
    fc.oneof(
      fc.constantFrom("", " \n", "r".repeat(3_000)),
      anything.filter((value) => typeof value !== "string"),
    ),
  ),
  inContract("inputAliases", fc.oneof(fc.constant([]), fc.array(badAlias, { minLength: 1 }), anything)),
  inContract(
    "expectedArtifacts",
    fc.oneof(
      fc.array(fc.oneof(text, anything), { minLength: 1 }),
      anything.filter((value) => !Array.isArray(value)),
    ),
  ),
  text.map((name) => (call: Call) => ({ ...call, postProcessingContract: { ...call.postProcessingContract, [`x${name}`]: 1 } })),
  text.map((name) => (call: Call) => ({ ...call, [`x${name}`]: 1 })),
  badName.map((name) => (call: Call) => ({ ...call, inputs: Object.fromEntries([[name, "get_price_2"]]) })),
  badAlias.map((alias) => (call: Call) => ({ ...call, inputs: { prices: alias } })),
  anything
    .filter((value) => value !== null && value !== undefined && typeof value !== "object")
    .map((inputs) => (call: Call) => ({ ...call, inputs })),
  fc.constantFrom("operation", "reason", "inputAliases", "expectedArtifacts").map(without),
  anything.map((value) => () => value),
);

it("answers each of 2,000 malformed calls with a valid tool error whose example is accepted, and starts no sandbox and no process", async () => {
  const tally = new Map<string, number>();
  let opened = 0;
  const turn = createTurn(() => {
    opened += 1;
    return Promise.reject(new Error("a sandbox was asked for"));
  });
  let calls = 0;
  const before = await childProcesses();
  const property = fc.asyncProperty(validCall, fc.array(breakage, { minLength: 1, maxLength: 4 }), async (call, breakages) => {
    const malformed = breakages.reduce<unknown>((broken, breakIt) => (isCall(broken) ? breakIt(broken) : broken), call);
    const answer = await runCodeInterpreter(turn, malformed);
    calls += 1;
    const { error: toolError, text } = answer;
    if (toolError === null) throw new Error("a malformed call was accepted");
    const nothing = { outcome: null, artifacts: [], aliases: [], cutAliases: [], resultAlias: null, findings: [], repair: null };
    expect(answer).toEqual({ ...nothing, status: "refused", error: toolError, text });
    const read = toolErrorSchema.parse(JSON.parse(serializeToolError(toolError)));
    expect(read.error_kind).toBe("mcp_input_validation");
    expect(read.details.length).toBeGreaterThan(0);
    for (const { error_code } of read.details) tally.set(error_code ?? "", (tally.get(error_code ?? "") ?? 0) + 1);
    for (const example of read.examples)
      expect(await validateCodeInterpreterContract(example, context)).toEqual({ ok: true, call: example });
  });
  await fc.assert(property, { numRuns: 2_000 });
  expect([calls, opened, turn.sandbox, turn.last, await childProcesses()]).toEqual([2_000, 0, null, null, before]);
  // The generators cover every rule.
  expect([...tally.keys()].sort()).toEqual(
    expect.arrayContaining([
      "ALIAS_REQUIRED",
      "ALIAS_UNKNOWN",
      "CODE_EMPTY",
      "LOCAL_NAME_INVALID",
      "LOCAL_NAME_RESERVED",
      "PYTHON_SYNTAX_ERROR",
      "SCHEMA_ADDITIONAL_PROPERTIES",
      "SCHEMA_ENUM_MISMATCH",
      "SCHEMA_MAX_LENGTH",
      "SCHEMA_MIN_LENGTH",
      "SCHEMA_REQUIRED",
      "SCHEMA_TYPE_MISMATCH",
    ]),
  );
}, 120_000);

/** The running child processes of this process. */
async function childProcesses(): Promise<string[]> {
  const threads = await readdir("/proc/self/task");
  const lists = await Promise.all(threads.map((id) => readFile(`/proc/self/task/${id}/children`, "utf8").catch(() => "")));
  return lists.flatMap((list) => list.trim().split(" ")).filter((id) => id !== "");
}

/** A later change may undo an earlier one only by breaking the same field again. */
function isCall(value: unknown): value is Call {
  if (typeof value !== "object" || value === null || !("postProcessingContract" in value)) return false;
  return typeof value.postProcessingContract === "object" && value.postProcessingContract !== null;
}

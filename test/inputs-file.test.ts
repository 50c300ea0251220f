import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CellInput, InputFormat } from "../src/cells/cell-inputs.ts";
import type { CellRequest } from "../src/cells/open-cell-session.ts";
import type { Runtime } from "../src/create-runtime.ts";
import type { CellOutcome } from "../src/protocol/outcome.ts";
import { withLimits } from "../src/sandbox/limits.ts";
import { openTestRuntime, testedDrivers } from "./test-runtime.ts";

/** Cells that open `inputs.json` instead of using variables. */
describe.each(testedDrivers)("inputs.json on %s", (driver) => {
  let runtime: Runtime;

  beforeAll(() => {
    runtime = openTestRuntime(driver, { poolSize: 1 });
  });
  afterAll(async () => await runtime.close(), 60_000);

  const input = (format: InputFormat, text: string): CellInput => ({ format, bytes: Buffer.from(text) });
  const inputs = new Map([
    ["rows", input("json", '\uFEFF[{"exact": 1.10, "big": 12345678901234567890}]')],
    ["table", input("csv", "region,revenue\nnorth,1.5\nsouth,\n")],
    ["lines", input("jsonl", '{"a": 1}\n{"a": 2}\n')],
    ["note", input("text", "grüße")],
    ["raw", input("bytes", "\u0001")],
  ]);
  const content = {
    rows: [{ exact: 1.1, big: 12345678901234567890n }],
    table: [
      { region: "north", revenue: 1.5 },
      { region: "south", revenue: null },
    ],
    lines: [{ a: 1 }, { a: 2 }],
    note: "grüße",
    raw: "AQ==",
  };

  async function run(request: CellRequest): Promise<CellOutcome> {
    await using session = await runtime.openCellSession();
    return await session.run(request);
  }

  test.each(["/vercel/sandbox/inputs.json", "inputs.json", "/sandbox/inputs.json", "./inputs.json"])(
    "%s has every input under its alias and its local names, with every digit of JSON",
    async (path) => {
      const { resultJson, error } = await run({ code: `import json\njson.load(open("${path}"))`, inputs, names: { amounts: "rows" } });
      expect(error?.traceback).toBeUndefined();
      expect(resultJson).toContain("12345678901234567890");
      const expected = JSON.parse(JSON.stringify(content, (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value)));
      expect(JSON.parse(resultJson!)).toEqual({ ...expected, amounts: expected.rows });
    },
  );

  test("it is there however the code writes its name, with what was sent, and as it is when an input changes", async () => {
    await using session = await runtime.openCellSession();
    session.bind("prices", input("json", "[1]"));
    const read = async (code: string): Promise<string | null> => (await session.run({ code })).resultJson;
    expect(await read('import os, json\nprices.append(2)\njson.load(open(os.path.join("/vercel/sandbox", "inputs.json")))')).toBe(
      '{"prices":[1]}',
    );
    session.bind("prices", input("json", "[3]"));
    expect(await read('from pathlib import Path\njson.loads((Path("/vercel/sandbox") / "inputs.json").read_bytes())')).toBe(
      '{"prices":[3]}',
    );
    expect(await read(`import subprocess\nsubprocess.run(["cat", "inputs.json"], capture_output=True, text=True).stdout`)).toBe(
      '"{\\"prices\\":[3]}\\n"',
    );
  });

  test("it is not written for code that does not name it", async () => {
    const code = "import os\n# not inputs.json\nname = 'my-inputs.json'\n[os.path.exists('inputs' + '.json'), len(inputs)]";
    expect((await run({ code, inputs })).resultJson).toBe("[false,5]");
  });

  test("a session that continues in a new sandbox reads the same file again", async () => {
    await using session = await runtime.openCellSession();
    session.bind("prices", input("json", "[1, 2]"));
    await session.run({ code: 'import json\nkept = json.load(open("inputs.json"))["prices"]' });
    await session.release();
    const { resultJson, diagnostics } = await session.run({ code: "sum(kept)" });
    expect([resultJson, diagnostics["sandboxReplaced"]]).toEqual(["3", { variables: "replayed", cells: 1 }]);
  });

  test.each([
    ["a table", input("csv", `long_name_of_a_column\n${"1\n".repeat(100)}`)],
    ["text", input("text", "\n".repeat(300))],
  ])("one that would exceed inputBytes with %s is refused with the limit, and no part of it stays", async (_, given) => {
    await using session = await runtime.openCellSession({ limits: withLimits({ inputBytes: 400 }) });
    const { status, error } = await session.run({ code: '\nopen("inputs.json")', inputs: new Map([["given", given]]) });
    const message =
      "inputs.json would have more than 400 bytes, the limit inputBytes, with all inputs as JSON. Use inputs['alias'], which needs no copy.";
    expect([status, error]).toEqual(["python_error", expect.objectContaining({ type: "InputError", line: 2, message })]);
    expect((await session.run({ code: "import os\nos.listdir()" })).resultJson).not.toContain("inputs.json");
  });

  test("an input that cannot be read is named", async () => {
    const { error } = await run({ code: 'open("inputs.json")', inputs: new Map([["broken", input("json", "{nonsense")]]) });
    expect(error).toMatchObject({
      type: "InputError",
      line: 1,
      message: expect.stringContaining("input 'broken' is not readable as json"),
    });
  });

  test("a cell cannot write to it, and is told why; a failed cell has not changed it", async () => {
    const { error, diagnostics } = await run({ code: 'open("other.txt", "w")\nopen("inputs.json", "w")', inputs });
    expect(error?.message).toBe(
      "[Errno 13] Permission denied: 'inputs.json'. inputs.json is written before each cell that names it, and holds the inputs: use another name.",
    );
    expect(diagnostics["scratchChanged"]).toEqual(["other.txt"]);
  });

  test("without inputs, the name is free", async () => {
    expect((await run({ code: 'open("inputs.json", "w").write("[1]")\nopen("inputs.json").read()' })).resultJson).toBe('"[1]"');
  });
});

import { afterAll, describe, expect, it } from "vitest";
import type { ToolError } from "../../errors/tool-error.ts";
import type { CodeInterpreterCall } from "./code-interpreter-call.ts";
import { contextFacts } from "./fixtures/contract-context.ts";
import { createPythonParser } from "./python-parser.ts";
import { validateCodeInterpreterContract } from "./validate-code-interpreter-contract.ts";

const parser = createPythonParser();
const context = { ...contextFacts, parser };
afterAll(() => parser.close());

const contract = {
  operation: "derive_metric",
  reason: "The user asked for the mean.",
  inputAliases: ["get_price_1"],
  expectedArtifacts: [],
};
const valid = { code: "set_result(to_frame(get_price_1).mean())", postProcessingContract: contract } as CodeInterpreterCall;
const known = "Known aliases: get_price_1, get_price_2, result_1.";
const ownReason = "Derive the requested figure from the tool's output.";
const ownCode = "df = to_frame(get_price_1)\nset_result(df.describe())";

describe("validateCodeInterpreterContract", () => {
  it("accepts a valid call unchanged", async () => {
    expect(await validateCodeInterpreterContract(valid, context)).toEqual({ ok: true, call: valid });
    const full = { ...valid, inputs: { prices: "get_price_1", preis_é: "result_1", get_price_2: "get_price_2" } };
    expect(await validateCodeInterpreterContract(full, context)).toEqual({ ok: true, call: full });
  });

  it("drops null inputs and duplicates", async () => {
    const wordy = { ...valid, inputs: null, postProcessingContract: { ...contract, inputAliases: ["get_price_1", "get_price_1"] } };
    expect(await validateCodeInterpreterContract(wordy, context)).toEqual({ ok: true, call: valid });
  });

  it("does not check imports, which the sandbox does", async () => {
    const code = "import json, requests\nfrom sklearn import svm\n";
    expect(await validateCodeInterpreterContract({ ...valid, code }, context)).toEqual({ ok: true, call: { ...valid, code } });
  });

  it("reports a contract without an alias", async () => {
    expect(await toolErrorOf({ ...valid, postProcessingContract: { ...contract, inputAliases: [] } })).toEqual(
      refusal({
        error_code: "ALIAS_REQUIRED",
        summary: "The call was not run. The contract names no alias; at least one is needed.",
        details: [
          {
            path: "postProcessingContract.inputAliases",
            issue: "The contract names no alias; at least one is needed.",
            received_type: "array",
            error_code: "ALIAS_REQUIRED",
          },
        ],
        hints: ["Python derives from tool outputs and cannot fetch data: name the aliases that the code reads.", known],
        examples: [{ ...valid, postProcessingContract: { ...contract, inputAliases: ["result_1"] } }],
      }),
    );
  });

  it("reports an unknown alias and suggests a similar one", async () => {
    const call = {
      ...valid,
      inputs: { prices: "getPrice1" },
      postProcessingContract: { ...contract, inputAliases: ["get_prcie_2", "weather"] },
    };
    expect(await toolErrorOf(call)).toEqual(
      refusal({
        error_code: "ALIAS_UNKNOWN",
        summary: 'The call was not run. No tool output has the alias "get_prcie_2". Did you mean "get_price_2"? And 2 more problems.',
        details: [
          {
            path: "postProcessingContract.inputAliases[0]",
            issue: 'No tool output has the alias "get_prcie_2". Did you mean "get_price_2"?',
            received_type: "string",
            error_code: "ALIAS_UNKNOWN",
          },
          {
            path: "postProcessingContract.inputAliases[1]",
            issue: 'No tool output has the alias "weather".',
            received_type: "string",
            error_code: "ALIAS_UNKNOWN",
          },
          {
            path: "inputs.prices",
            issue: 'No tool output has the alias "getPrice1". Did you mean "get_price_1"?',
            received_type: "string",
            error_code: "ALIAS_UNKNOWN",
          },
        ],
        hints: [known],
        examples: [
          {
            ...valid,
            inputs: { prices: "get_price_1" },
            postProcessingContract: { ...contract, inputAliases: ["get_price_2", "get_price_1"] },
          },
        ],
      }),
    );
  });

  it("asks to fetch data first if there is none, without an example", async () => {
    const verdict = await validateCodeInterpreterContract(valid, { ...context, aliases: [] });
    const issue = 'No tool output has the alias "get_price_1".';
    expect(verdict).toEqual({
      ok: false,
      toolError: refusal({
        error_code: "ALIAS_UNKNOWN",
        summary: `The call was not run. ${issue}`,
        details: [{ path: "postProcessingContract.inputAliases[0]", issue, received_type: "string", error_code: "ALIAS_UNKNOWN" }],
        hints: ["There are no tool outputs yet. Call a tool that fetches the data first, then use the alias of its output."],
        examples: [],
      }),
    });
  });

  it("reports local names that are not identifiers or are reserved", async () => {
    const inputs = Object.fromEntries(
      ["my price", "1st", "ﬁ", "", "class", "list", "set_result", "pd", "inputs", "__name__", "get_price_2"].map((name) => [
        name,
        "get_price_1",
      ]),
    );
    const toolError = await toolErrorOf({ ...valid, inputs });
    const details = [
      ['inputs["my price"]', 'The local name "my price" is not a Python identifier.', "LOCAL_NAME_INVALID"],
      ['inputs["1st"]', 'The local name "1st" is not a Python identifier.', "LOCAL_NAME_INVALID"],
      ['inputs["ﬁ"]', 'The local name "ﬁ" is not a Python identifier.', "LOCAL_NAME_INVALID"],
      ['inputs[""]', 'The local name "" is not a Python identifier.', "LOCAL_NAME_INVALID"],
      ["inputs.class", 'The local name "class" is a Python keyword.', "LOCAL_NAME_RESERVED"],
      ["inputs.list", 'The local name "list" is a Python builtin.', "LOCAL_NAME_RESERVED"],
      ["inputs.set_result", 'The local name "set_result" is a helper.', "LOCAL_NAME_RESERVED"],
      ["inputs.pd", 'The local name "pd" is a preloaded name.', "LOCAL_NAME_RESERVED"],
      ["inputs.inputs", 'The local name "inputs" is a preloaded name.', "LOCAL_NAME_RESERVED"],
      ["inputs.__name__", `The local name "__name__" is a special Python name.`, "LOCAL_NAME_RESERVED"],
      ["inputs.get_price_2", 'The local name "get_price_2" is the alias of another tool output.', "LOCAL_NAME_RESERVED"],
    ].map(([path, issue, error_code]) => ({ path: path!, issue: issue!, received_type: "string", error_code }));
    const corrected = ["my_price", "_1st", "fi", "class_data", "list_data", "set_result_data", "pd_data", "inputs_data", "__name___data"];
    expect(toolError).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: 'The call was not run. The local name "my price" is not a Python identifier. And 10 more problems.',
        details,
        hints: [
          "Local names are Python identifiers: letters, digits and underscores, not starting with a digit.",
          "Choose another local name, or leave inputs out and use the alias itself.",
        ],
        examples: [{ ...valid, inputs: Object.fromEntries([...corrected, "get_price_2_data"].map((name) => [name, "get_price_1"])) }],
      }),
    );
  });

  it("reports where the code is not Python", async () => {
    expect(await toolErrorOf({ ...valid, code: "x = [1, 2\nreturn x" })).toEqual(
      refusal({
        error_code: "PYTHON_SYNTAX_ERROR",
        summary: "The call was not run. Line 1, column 10: Expected `]`, found newline.",
        details: [
          {
            path: "code",
            issue: "Line 1, column 10: Expected `]`, found newline.",
            received_type: "string",
            error_code: "PYTHON_SYNTAX_ERROR",
            line: 1,
            column: 10,
          },
        ],
        hints: [],
        examples: [{ ...valid, code: ownCode }],
      }),
    );
  });

  it.each([
    [
      "return df",
      [[1, 1, "`return` statement outside of a function/method."]],
      "A cell is a script: call set_result(value) instead of return.",
    ],
    [
      "await call_tool('x', {})",
      [[1, 1, "`await` statement outside of a function."]],
      "A cell is a plain script; tools cannot be called from it, and nothing needs to be awaited.",
    ],
    [
      "!pip install seaborn",
      [[1, 1, "Expected a statement."]],
      "IPython magics and shell commands are not Python. Leave them out: nothing can be installed, and figures are saved with save_figure(alt).",
    ],
    ["print 'a'", [[1, 7, "Simple statements must be separated by newlines or semicolons."]], "print is a function: print(value)."],
    [
      "```python\nx = 1\n```",
      [
        [1, 1, "Got unexpected token `."],
        [3, 1, "Got unexpected token `."],
      ],
      "Send the code alone, without Markdown fences.",
    ],
  ] as [string, [number, number, string][], string][])("has a hint for %j", async (code, errors, hint) => {
    expect(await toolErrorOf({ ...valid, code })).toEqual(notPython(errors, [hint]));
  });

  it("counts the lines with errors that it does not list", async () => {
    const errors = Array.from({ length: 10 }, (_, index): [number, number, string] => [index + 1, 5, "Expected an expression."]);
    expect(await toolErrorOf({ ...valid, code: "x = = 1\n".repeat(25) })).toEqual(
      notPython(errors, ["There are 15 more lines with errors."]),
    );
  });

  it.each([
    ["\uFEFFx = 1", 1, 1, "U+FEFF"],
    ["x = 1\ny = '😀\0'", 2, 7, "U+0000"],
    ["x = '\uD800'", 1, 6, "U+D800"],
  ])("reports characters that Python source must not contain: %j", async (code, line, column, character) => {
    expect(await toolErrorOf({ ...valid, code })).toEqual(
      notPython([[line, column, `the character ${character} cannot be in Python source.`]], []),
    );
  });

  it("reports code that is empty, too long, or nested too deeply", async () => {
    const ofCode = (error_code: string, issue: string, hints: string[] = []): ToolError =>
      refusal({
        error_code,
        summary: `The call was not run. ${issue}`,
        details: [{ path: "code", issue, received_type: "string", error_code }],
        hints,
        examples: [{ ...valid, code: ownCode }],
      });
    expect(await toolErrorOf({ ...valid, code: " \n" })).toEqual(ofCode("CODE_EMPTY", "There is no code."));
    expect(await toolErrorOf({ ...valid, code: `x = "${"é".repeat(131_072)}"` })).toEqual(
      ofCode("CODE_TOO_LONG", "The code has 262150 bytes, 262144 are allowed.", ["Data is bound by alias; do not write it into the code."]),
    );
    expect(await toolErrorOf({ ...valid, code: "(".repeat(100_000) })).toEqual(
      ofCode("PYTHON_UNPARSABLE", "The code is nested too deeply to be parsed.", ["Use a loop, or name intermediate values."]),
    );
  });

  it("reports a timeout of the check as retryable", async () => {
    const slow = { ...parser, parse: () => Promise.resolve({ status: "timeout" } as const) };
    const issue = "The code could not be checked in time.";
    expect(await validateCodeInterpreterContract(valid, { ...context, parser: slow })).toEqual({
      ok: false,
      toolError: refusal({
        error_code: "PYTHON_CHECK_TIMEOUT",
        retryable: true,
        summary: `The call was not run. ${issue}`,
        details: [{ path: "code", issue, received_type: "string", error_code: "PYTHON_CHECK_TIMEOUT" }],
        hints: ["Try again; if it happens again, make the code shorter."],
        examples: [{ ...valid, code: ownCode }],
      }),
    });
  });

  const named = { ...valid, postProcessingContract: contract };
  const unnamed = { operation: "derive_metric", reason: ownReason, inputAliases: ["result_1"], expectedArtifacts: [] };
  it.each([
    {
      call: { postProcessingContract: contract },
      problem: ["SCHEMA_REQUIRED", "code", "code is missing.", "missing"],
      example: { ...valid, code: ownCode },
    },
    {
      call: { code: "x = 1" },
      problem: ["SCHEMA_REQUIRED", "postProcessingContract", "postProcessingContract is missing.", "missing"],
      example: { code: "x = 1", postProcessingContract: unnamed },
    },
    {
      call: null,
      problem: ["SCHEMA_TYPE_MISMATCH", "", "The call must be an object, not null.", "null"],
      example: { code: ownCode.replace("get_price_1", "result_1"), postProcessingContract: unnamed },
    },
    {
      call: { ...valid, code: 3 },
      problem: ["SCHEMA_TYPE_MISMATCH", "code", "code must be a string, not 3.", "number"],
      example: { ...valid, code: ownCode },
    },
    {
      call: { ...valid, inputs: [] },
      problem: ["SCHEMA_TYPE_MISMATCH", "inputs", "inputs must be an object, not an array.", "array"],
      example: named,
    },
    {
      call: { ...valid, inputs: { a: {} } },
      problem: ["SCHEMA_TYPE_MISMATCH", "inputs.a", "inputs.a must be a string, not an object.", "object"],
      example: named,
    },
    {
      call: { ...valid, pythonCode: "x" },
      problem: [
        "SCHEMA_ADDITIONAL_PROPERTIES",
        "pythonCode",
        "pythonCode is not a known field. Known fields: code, inputs, postProcessingContract.",
        "string",
      ],
      example: named,
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, expected_artifacts: [] } },
      problem: [
        "SCHEMA_ADDITIONAL_PROPERTIES",
        "postProcessingContract.expected_artifacts",
        'postProcessingContract.expected_artifacts is not a known field. Did you mean "expectedArtifacts"?',
        "array",
      ],
      example: named,
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, operation: "agregate" } },
      problem: [
        "SCHEMA_ENUM_MISMATCH",
        "postProcessingContract.operation",
        'postProcessingContract.operation must be one of "derive_metric", "aggregate", "align", "transform", "statistics", "model_fit", "chart", "other", not "agregate". Did you mean "aggregate"?',
        "string",
      ],
      example: { ...valid, postProcessingContract: { ...contract, operation: "aggregate" } },
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, expectedArtifacts: ["png"] } },
      problem: [
        "SCHEMA_ENUM_MISMATCH",
        "postProcessingContract.expectedArtifacts[0]",
        'postProcessingContract.expectedArtifacts[0] must be one of "image", "chart", not "png".',
        "string",
      ],
      example: named,
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, reason: "  " } },
      problem: ["SCHEMA_MIN_LENGTH", "postProcessingContract.reason", "postProcessingContract.reason must not be empty.", "string"],
      example: { ...valid, postProcessingContract: { ...contract, reason: ownReason } },
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, reason: "x".repeat(2_001) } },
      problem: [
        "SCHEMA_MAX_LENGTH",
        "postProcessingContract.reason",
        "postProcessingContract.reason is longer than 2000 characters.",
        "string",
      ],
      example: { ...valid, postProcessingContract: { ...contract, reason: ownReason } },
    },
    {
      call: { ...valid, postProcessingContract: { ...contract, inputAliases: Array.from({ length: 300 }, () => "get_price_1") } },
      problem: [
        "SCHEMA_MAX_ITEMS",
        "postProcessingContract.inputAliases",
        "postProcessingContract.inputAliases has more than 256 items.",
        "array",
      ],
      example: named,
    },
    {
      call: { ...valid, inputs: Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`n${n}`, "get_price_1"])) },
      problem: ["SCHEMA_MAX_ITEMS", "inputs", "inputs has more than 256 names.", "object"],
      example: { ...valid, inputs: Object.fromEntries(Array.from({ length: 256 }, (_, n) => [`n${n}`, "get_price_1"])) },
    },
    {
      call: { ...valid, postProcessingContract: JSON.stringify(contract) },
      problem: ["SCHEMA_TYPE_MISMATCH", "postProcessingContract", "postProcessingContract must be an object, not its JSON text.", "string"],
      example: { ...valid, postProcessingContract: unnamed },
    },
  ])("reports what breaks the schema: $problem", async ({ call, problem, example }) => {
    const [error_code, path, issue, received_type] = problem as [string, string, string, string];
    const hint = /(?:Did you mean|Known fields).*/.exec(issue)?.[0];
    expect(await toolErrorOf(call)).toEqual(
      refusal({
        error_code,
        summary: `The call was not run. ${issue}`,
        details: [{ path, issue, received_type, error_code }],
        hints: hint === undefined ? [] : [`${path}: ${hint}`],
        examples: [example],
      }),
    );
    expect(await validateCodeInterpreterContract(example, context)).toEqual({ ok: true, call: example });
  });

  it("reports all problems at once, each with its own code", async () => {
    const call = {
      code: "x = (",
      inputs: { "a b": "get_price_3" },
      postProcessingContract: { operation: "Chart", reason: "", inputAliases: [], expectedArtifacts: ["image", "pdf"], extra: 1 },
    };
    const one = (error_code: string, path: string, issue: string, more: object = {}): ToolError["details"][number] => ({
      path,
      issue,
      received_type: "string",
      error_code,
      ...more,
    });
    expect(await toolErrorOf(call)).toEqual(
      refusal({
        error_code: "INPUT_VALIDATION_FAILED",
        summary: expect.stringMatching(
          /^The call was not run\. postProcessingContract\.operation must .+ And 7 more problems\.$/,
        ) as string,
        details: [
          one(
            "SCHEMA_ENUM_MISMATCH",
            "postProcessingContract.operation",
            'postProcessingContract.operation must be one of "derive_metric", "aggregate", "align", "transform", "statistics", "model_fit", "chart", "other", not "Chart". Did you mean "chart"?',
          ),
          one("SCHEMA_MIN_LENGTH", "postProcessingContract.reason", "postProcessingContract.reason must not be empty."),
          one(
            "SCHEMA_ENUM_MISMATCH",
            "postProcessingContract.expectedArtifacts[1]",
            'postProcessingContract.expectedArtifacts[1] must be one of "image", "chart", not "pdf".',
          ),
          one(
            "SCHEMA_ADDITIONAL_PROPERTIES",
            "postProcessingContract.extra",
            "postProcessingContract.extra is not a known field. Known fields: operation, reason, inputAliases, expectedArtifacts.",
            { received_type: "number" },
          ),
          one("ALIAS_REQUIRED", "postProcessingContract.inputAliases", "The contract names no alias; at least one is needed.", {
            received_type: "array",
          }),
          one("ALIAS_UNKNOWN", 'inputs["a b"]', 'No tool output has the alias "get_price_3". Did you mean "get_price_1"?'),
          one("LOCAL_NAME_INVALID", 'inputs["a b"]', 'The local name "a b" is not a Python identifier.'),
          one("PYTHON_SYNTAX_ERROR", "code", "Line 1, column 6: unexpected EOF while parsing.", { line: 1, column: 6 }),
        ],
        hints: [
          'postProcessingContract.operation: Did you mean "chart"?',
          "postProcessingContract.extra: Known fields: operation, reason, inputAliases, expectedArtifacts.",
          "Python derives from tool outputs and cannot fetch data: name the aliases that the code reads.",
          known,
          "Local names are Python identifiers: letters, digits and underscores, not starting with a digit.",
        ],
        examples: [
          {
            code: 'df = to_frame(get_price_1)\ndf.plot()\nsave_figure("What the figure shows of get_price_1")\nset_result(df.describe())',
            inputs: { a_b: "get_price_1" },
            postProcessingContract: { operation: "chart", reason: ownReason, inputAliases: ["get_price_1"], expectedArtifacts: ["image"] },
          },
        ],
      }),
    );
  });

  it("counts what it does not list: problems, schema errors, unknown fields", async () => {
    const aliases = Array.from({ length: 60 }, (_, n) => `nothing_${n}`);
    const many = await toolErrorOf({ ...valid, postProcessingContract: { ...contract, inputAliases: aliases } });
    expect([many.summary, many.details.length, many.hints]).toEqual([
      'The call was not run. No tool output has the alias "nothing_0". And 59 more problems.',
      40,
      ["Only the first 40 of 60 problems are listed.", known],
    ]);
    const wrong = await toolErrorOf({ ...valid, postProcessingContract: { ...contract, expectedArtifacts: Array(100).fill("png") } });
    expect([wrong.details.length, wrong.hints]).toEqual([40, ["Only the first 40 of 100 problems are listed."]]);
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x${n}`, n]));
    const unknown = await toolErrorOf({ ...valid, ...fields });
    expect([unknown.details.length, unknown.hints.at(0), unknown.hints.at(-1)]).toEqual([
      40,
      "Only the first 40 of 100 problems are listed.",
      "90 more hints were left out.",
    ]);
  });

  it("survives hostile input", async () => {
    let deep: unknown = "x";
    for (let index = 0; index < 200_000; index += 1) deep = [deep];
    const proto = JSON.parse('{"__proto__": {"code": "x = 1"}, "inputs": {"__proto__": "get_price_1"}}') as unknown;
    const trap = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("no");
        },
      },
    );
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`n${index}`, "x".repeat(100)]));
    for (const input of [
      deep,
      { ...valid, extra: deep },
      { ...valid, inputs: { a: deep } },
      proto,
      trap,
      { ...valid, inputs: wide },
      wide,
      { ...valid, ["k".repeat(1e6)]: 1 },
    ]) {
      const toolError = await toolErrorOf(input);
      expect(JSON.stringify(toolError).length).toBeLessThan(64 * 1024);
    }
  });
});

async function toolErrorOf(input: unknown): Promise<ToolError> {
  const verdict = await validateCodeInterpreterContract(input, context);
  if (verdict.ok) throw new Error("the call was accepted");
  return verdict.toolError;
}

function refusal(facts: Pick<ToolError, "error_code" | "summary" | "details" | "hints" | "examples"> & { retryable?: boolean }): ToolError {
  return { error_kind: "mcp_input_validation", tool: "code_interpreter", retryable: false, _envelope_version: 1, ...facts };
}

/** The tool error for code that does not parse. */
function notPython(errors: readonly (readonly [line: number, column: number, message: string])[], hints: string[]): ToolError {
  const details = errors.map(([line, column, message]) => ({
    path: "code",
    issue: `Line ${line}, column ${column}: ${message}`,
    received_type: "string",
    error_code: "PYTHON_SYNTAX_ERROR",
    line,
    column,
  }));
  const rest = errors.length - 1;
  const summary = `The call was not run. ${details[0]!.issue}${rest === 0 ? "" : ` And ${rest} more problem${rest === 1 ? "" : "s"}.`}`;
  return refusal({ error_code: "PYTHON_SYNTAX_ERROR", summary, details, hints, examples: [{ ...valid, code: ownCode }] });
}

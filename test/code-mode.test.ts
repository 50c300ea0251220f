import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getEnvelopeContract } from "../src/errors/error-table.ts";
import * as sluice from "../src/index.ts";
import { adsProgram, adsIdentities, openFace, setContext, type CodeModeFace } from "./fixtures/open-code-mode.ts";

/** `execute` through its public interface, with the sample ads backend as a process over stdio. */
let runtime: sluice.Runtime;
let ads: sluice.ToolSource;
let catalog: sluice.ToolCatalog;
let face: CodeModeFace;

beforeAll(() => {
  runtime = sluice.createRuntime({ cacheDirectory: sluice.cacheDirectory(), poolSize: 0 });
  ads = sluice.createMcpSource({ name: "ads", server: { command: process.execPath, args: [adsProgram] }, environment: process.env });
  catalog = sluice.createToolCatalog({ sources: [ads] });
  const identity = adsIdentities("meta", "ads").open({ tenant: "t", contextId: "s", subject: null });
  face = openFace(runtime, { catalog, identity });
});
afterAll(async () => {
  await catalog[Symbol.asyncDispose]();
  await ads[Symbol.asyncDispose]();
  await runtime.close();
});

describe("the tools", () => {
  it("are search, get_schema, tags, execute, get_envelope_contract and the identity tools", () => {
    expect(face.names).toEqual([
      ...["search", "get_schema", "tags", "execute", "get_envelope_contract"],
      ...["get_session_state", "set_active_identity", "set_region", "set_active_profile", "get_active_context"],
    ]);
    expect(openFace(runtime, { catalog }).names).toEqual(["search", "get_schema", "tags", "execute", "get_envelope_contract"]);
  });

  it("search ranks tools, and says how many of all it lists", async () => {
    expect(await face.call("search", { query: "report status", limit: 2 })).toEqual({
      found: "2 of 14 tools",
      tools: [
        { name: "get_report_status", description: "Whether a report is ready." },
        { name: "create_report", description: "Orders a report over all campaigns." },
      ],
      hints: [expect.stringMatching(/^\d+ more match\. Raise limit, or make the query more precise\.$/)],
    });
    expect(await face.call("search", { query: "", tags: ["campaigns"] })).toMatchObject({
      found: "4 of 14 tools",
      tools: [{ name: "list_campaigns" }, { name: "get_campaign" }, { name: "list_ad_groups" }, { name: "delete_campaign" }],
    });
    expect(await face.call("search", { query: "campaign", detail: "detailed", limit: 1 })).toMatchObject({
      found: "1 of 14 tools",
      tools: [{ signature: expect.stringContaining("campaign") as string }],
    });
    expect(await face.call("search", { query: "weather on mars" })).toMatchObject({ found: "0 of 14 tools", tools: [] });
  });

  it("get_schema describes input and output in three levels of detail", async () => {
    const schemaOf = async (detail: string): Promise<unknown> => await face.call("get_schema", { tools: "get_campaign", detail });
    expect(await schemaOf("brief")).toEqual({ tools: [{ name: "get_campaign", description: "One campaign." }] });
    expect(await schemaOf("detailed")).toEqual({
      tools: [
        {
          name: "get_campaign",
          signature: "get_campaign(campaign_id: str) -> Result",
          description: "One campaign.",
          types: [
            'class Result(TypedDict):\n    campaign_id: str\n    name: str\n    state: Literal["enabled", "paused", "archived"]\n    daily_budget: float\n    start_date: str',
          ],
          parameters: { campaign_id: "As in list_campaigns." },
          annotations: { readOnlyHint: true },
          tags: ["ads", "campaigns"],
        },
      ],
    });
    expect(await schemaOf("full")).toMatchObject({
      tools: [
        {
          inputSchema: { type: "object", required: ["campaign_id"] },
          outputSchema: { type: "object", properties: { state: { enum: ["enabled", "paused", "archived"] } } },
        },
      ],
    });
  });

  it("get_schema suggests names for an unknown tool, and describes the others", async () => {
    expect(await face.call("get_schema", { tools: ["list_campaign", "list_regions"], detail: "brief" })).toEqual({
      tools: [{ name: "list_regions", description: "The regions of the service." }],
      notFound: [{ name: "list_campaign", didYouMean: ["list_campaigns", "get_campaign"] }],
    });
  });

  it("tags are listed with the number of tools", async () => {
    expect(await face.call("tags")).toEqual({
      tags: [
        { tag: "ads", tools: 14 },
        { tag: "campaigns", tools: 4 },
        { tag: "reports", tools: 4 },
        { tag: "account", tools: 3 },
        { tag: "metrics", tools: 3 },
      ],
      total: 14,
    });
  });

  it("refuse a call that does not match their schema with an envelope", async () => {
    expect(await face.call("execute", { script: "1" })).toMatchObject({
      status: "refused",
      error: { error_kind: "mcp_input_validation", error_code: "INPUT_VALIDATION_FAILED", tool: "execute" },
    });
    expect(await face.call("get_schema", { tools: "x", detail: "all" })).toMatchObject({ error: { error_code: "SCHEMA_ENUM_MISMATCH" } });
  });

  it("get_envelope_contract returns the table that the code uses, beside execute and in scripts", async () => {
    expect(await face.call("get_envelope_contract")).toEqual(getEnvelopeContract());
    expect((await face.execute("await call_tool('get_envelope_contract')")).result).toEqual(getEnvelopeContract());
  });

  it("refuse a destructive backend tool that is not allowed, also in a script", async () => {
    const code = `${setContext.replaceAll("eu", "na")}await call_tool("delete_campaign", {"campaign_id": "na-acme-c001"})`;
    const { error, aliases } = await face.execute(code);
    expect(error).toEqual({
      error_kind: "precondition_failed",
      tool: "delete_campaign",
      summary:
        'delete_campaign may not be called: it says that it is destructive, and it is not on the allow-list. To allow it, pass it to the tool policy: createToolPolicy({ allow: ["ads__delete_campaign"] }).',
      details: [],
      hints: [
        "Do without it, and tell the user what you would have changed.",
        "Only the operator of this server can change the allow-list. Show the user the line to add.",
      ],
      examples: [],
      error_code: "TOOL_NOT_ALLOWED",
      retryable: false,
      _envelope_version: 1,
    });
    expect(aliases).toEqual([]);
    const identity = adsIdentities("meta", "ads").open({ tenant: "t", contextId: "d", subject: null });
    const policy = sluice.createToolPolicy({ allow: ["ads__delete_campaign"] });
    expect((await openFace(runtime, { catalog, identity, policy }).execute(code)).result).toEqual({
      deleted: "na-acme-c001",
      remaining: 56,
    });
  });

  it("for discovery cannot be called inside a script", async () => {
    expect((await face.execute("await call_tool('search', {'query': 'x'})")).error).toMatchObject({
      error_code: "TOOL_NOT_FOUND",
      summary: 'The tool "search" cannot be called inside a script.',
      hints: ["Call search directly, not inside execute."],
    });
  });
});

describe("a script", () => {
  it("returns a value or ends in an expression, and its answer has every field", async () => {
    const answer = await face.execute("print('looking')\nr = await call_tool('ads__list_regions', {})\nreturn r['regions'][1]");
    expect(answer).toEqual({
      status: "ok",
      result: "eu",
      prints: "looking\n",
      aliases: [{ alias: "list_regions_1", _contextAlias: "list_regions_1", tool: "ads__list_regions", bytes: 28 }],
      warnings: [],
      engine: "monty",
      toolCalls: 1,
      timing: { executionMs: expect.any(Number) as number, totalMs: expect.any(Number) as number },
    });
    expect((await face.execute("(await call_tool('list_regions'))['regions']")).result).toEqual(["na", "eu", "fe"]);
  });

  it("passes complete tool outputs to code_interpreter, also of five megabytes", async () => {
    const { aliases, result, warnings } = await face.execute(`${setContext}terms = await call_tool("export_search_terms")
page = await call_tool("list_campaigns", {"page_size": 50})
return [len(terms["search_terms"]), len(page["campaigns"])]`);
    expect([result, warnings]).toEqual([[37_500, 50], []]);
    const kept = (tool: string): (typeof aliases)[0] => aliases.find((one) => one.tool === `ads__${tool}`)!;
    const [terms, page] = [kept("export_search_terms"), kept("list_campaigns")];
    expect(terms.bytes).toBeGreaterThan(5_000_000);
    const turn = runtime.createTurn({ id: "t", evidence: face.evidence, artifacts: sluice.createMemoryStore() });
    try {
      const { outcome, error: toolError } = await sluice.runCodeInterpreter(turn, {
        code: `set_result([len(${terms.alias}["search_terms"]), round(to_frame(${terms.alias}["search_terms"])["cost"].sum(), 2), len(${page.alias}["campaigns"])])`,
        postProcessingContract: {
          operation: "aggregate",
          reason: "Sums what the tools sent.",
          inputAliases: [terms.alias, page.alias],
          expectedArtifacts: [],
        },
      });
      expect(toolError ?? null).toBeNull();
      const sent = JSON.parse(new TextDecoder().decode(face.evidence.get(terms.alias)!.read())) as { search_terms: { cost: number }[] };
      const cost = sent.search_terms.reduce((sum, term) => sum + term.cost, 0);
      expect(JSON.parse(outcome!.resultJson!)).toEqual([37_500, Math.round(cost * 100) / 100, 50]);
    } finally {
      await sluice.disposeTurnSandbox(turn);
    }
  });

  it("gets a preview of a result over 64 KB, and an alias for the whole result", async () => {
    const answer = await face.execute(`${setContext}(await call_tool("export_search_terms"))["search_terms"][:2000]`);
    const kept = face.evidence.get(answer.resultAlias!)!;
    expect(kept.bytes).toBeGreaterThan(64 * 1024);
    expect(answer.warnings).toEqual([
      `The result has ${kept.bytes} bytes, so this is a preview. ${answer.resultAlias} is the whole result, for code_interpreter.`,
    ]);
    expect(JSON.stringify(answer).length).toBeLessThan(20_000);
    expect(JSON.parse(new TextDecoder().decode(kept.read()))).toHaveLength(2000);
    expect((await face.execute("'x' * 65000")).resultAlias).toBeUndefined();
  });

  it("gets warnings for results that it never took, and only for those", async () => {
    const lost = 'The result of call_tool("list_regions") was never awaited and is lost. Write await call_tool(...).';
    expect((await face.execute("call_tool('list_regions')\n1")).warnings).toEqual([lost]);
    expect((await face.execute("import collections\ncall_tool('list_regions')\n1")).warnings).toEqual([lost]);
    // Both were awaited. One failed before the other was taken.
    for (const first of ["", "import collections\n"]) {
      const { warnings, error } = await face.execute(
        `${first}import asyncio\nawait asyncio.gather(call_tool('list_region'), call_tool('list_profiles'))`,
      );
      expect([error?.["error_code"], warnings]).toEqual(["TOOL_NOT_FOUND", []]);
    }
  });

  it("runs in CPython if Monty would compute a wrong result", async () => {
    expect(await face.execute("[1, 2] < [1, 3]")).toMatchObject({
      result: true,
      engine: "cpython",
      engineReason: "Line 1 compares lists or sets with < or >, which Monty does not support.",
      warnings: [],
    });
  });

  it("polls a slow report with one status check per block, as the description says", async () => {
    const period = '{"start_date": "2026-01-01", "end_date": "2026-01-03"}';
    const { result: id } = await face.execute(`${setContext}(await call_tool("create_report", ${period}))["report_id"]`);
    const status = `(await call_tool("get_report_status", {"report_id": "${String(id)}"}))["status"]`;
    const seen: unknown[] = [];
    for (let block = 0; block < 3; block += 1) seen.push((await face.execute(setContext + status)).result);
    expect(seen).toEqual(["IN_PROGRESS", "IN_PROGRESS", "COMPLETED"]);
    expect(
      (await face.execute(`${setContext}len((await call_tool("download_report", {"report_id": "${String(id)}"}))["rows"])`)).result,
    ).toBe(57 * 3);
    expect(face.descriptionOf("execute")).toContain("make one status check per call");
  });
});

describe("the limits", () => {
  it("in the description are the configured ones", () => {
    const limits = { executionMs: 7_500, totalMs: 60_000, memoryBytes: 50_000_000, toolCalls: 5, concurrentToolCalls: 4, printBytes: 1024 };
    expect(openFace(runtime, { catalog, limits }).descriptionOf("execute")).toContain(
      "Limits: 7.5 s of computing (waiting for tools does not count), 60 s in total, 50 MB of memory, 5 tool calls, 4 at once, 256 KB of code, 10 MB of result, 1 KB of prints.",
    );
    expect(openFace(runtime, { catalog, limits: { concurrentToolCalls: 500 } }).descriptionOf("execute")).toContain(
      "50 tool calls, 16 at once",
    );
  });

  const toolError = (code: string, summary: string, detail: object, hints: string[]): object => ({
    error_kind: "sandbox_runtime",
    tool: "execute",
    summary,
    details: [{ received_type: "number", ...detail }],
    hints,
    examples: [],
    error_code: code,
    retryable: false,
    _envelope_version: 1,
  });
  const issue = expect.stringMatching(/^\d+ of \d+$/) as string;
  /** Both engines report the same messages. */
  describe.each(["monty", "cpython"] as const)("in %s", (engine) => {
    const execute: CodeModeFace["execute"] = async (code, limits) => {
      const answer = await face.execute(engine === "monty" ? code : `import collections\n${code}`, limits);
      expect(answer.engine).toBe(engine);
      return answer;
    };

    it("of computing ends a loop", async () => {
      expect((await execute("while True:\n    pass", { executionMs: 400 })).error).toEqual(
        toolError(
          "SANDBOX_TIMEOUT",
          "The script reached its limit of 400 ms of computing. Waiting for tools does not count.",
          { path: "executionMs", issue },
          ["Look for a loop that does not end.", "Do long computations in code_interpreter, or let a tool filter on its side."],
        ),
      );
    });

    it("of memory ends a script that uses too much", async () => {
      expect((await execute("x = 'a' * 300_000_000\nlen(x)")).error).toEqual(
        toolError(
          "SANDBOX_OUT_OF_MEMORY",
          "The script needed more than 100000000 bytes of memory.",
          { path: "memoryBytes", issue: expect.stringMatching(/^\d+ of 100000000$|^more than 100000000$/) as string },
          [
            "Keep only the fields that you need, page by page.",
            "Every tool result is kept whole under an alias, which code_interpreter can use.",
          ],
        ),
      );
      expect((await execute("x = 'a' * 30_000_000\nlen(x)", { memoryBytes: 20_000_000 })).error).toMatchObject({
        error_code: "SANDBOX_OUT_OF_MEMORY",
      });
    });

    it("of tool calls raises inside the script, where it can be caught", async () => {
      const code =
        "import json\nn = 0\ntry:\n    while True:\n        await call_tool('list_regions')\n        n += 1\nexcept RuntimeError as e:\n    r = [n, json.loads(str(e))]\nr";
      const { result, toolCalls } = await execute(code, { toolCalls: 3 });
      expect(result).toEqual([
        3,
        {
          ...toolError(
            "SANDBOX_TOOL_CALL_LIMIT",
            "A script may make 3 tool calls. This call was refused.",
            { path: "toolCalls", issue: "more than 3 calls" },
            [
              "Return what you have and continue in another execute call.",
              "Request more items per call: page size, filters, lists of ids.",
            ],
          ),
          tool: "list_regions",
        },
      ]);
      expect(toolCalls).toBe(4);
      expect((await execute(code)).result).toMatchObject([50, { error_code: "SANDBOX_TOOL_CALL_LIMIT" }]);
    });

    it("apply to results and printed text", async () => {
      expect((await execute("'a' * 3000", { resultBytes: 2000 })).error).toEqual(
        toolError(
          "PYTHON_OUTPUT_LIMIT",
          "The result is larger than 2000 bytes.",
          { path: "resultBytes", issue: expect.any(String) as string },
          ["Return a summary. Every tool result is kept whole under an alias, which code_interpreter can use."],
        ),
      );
      const { prints, result, warnings } = await execute("for i in range(1000):\n    print('line', i)\n'x'", { printBytes: 1000 });
      expect([result, prints.startsWith("line 0\n"), prints.endsWith("line 999\n"), Buffer.byteLength(prints) <= 1000]).toEqual([
        "x",
        ...[true, true, true],
      ]);
      expect(warnings).toEqual([
        `${8890 - Buffer.byteLength(prints)} bytes were cut from the middle of prints. Return data as the result instead.`,
      ]);
    });
  });
});

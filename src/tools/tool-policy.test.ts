import { describe, expect, it } from "vitest";
import { assignNames, type CatalogTool } from "./assign-names.ts";
import type { ToolAnnotations } from "./backend-tool.ts";
import { sampleTool } from "./fixtures/sample-tools.ts";
import { configurationSchema } from "../config/configuration-schema.ts";
import { createLocalSource } from "./create-local-source.ts";
import { createToolPolicy } from "./tool-policy.ts";

function toolWith(annotations: ToolAnnotations, name = "delete_order", server = "my shop"): CatalogTool {
  return assignNames([sampleTool({ server, name, annotations, isLocal: false })]).tools[0]!;
}

const destructive = toolWith({ destructiveHint: true });
const refusal = {
  error_kind: "precondition_failed",
  details: [],
  examples: [],
  error_code: "TOOL_NOT_ALLOWED",
  retryable: false,
  _envelope_version: 1,
};

/** The line that an error tells the operator to add, parsed as it would be in the configuration. */
function lineIn(text: string): { allow: string[] } {
  return JSON.parse(`{${/"allow": \[.*?\](?= in mcpServers)/.exec(text)![0]}}`) as { allow: string[] };
}

describe("the policy by annotations", () => {
  it.each<ToolAnnotations>([
    { readOnlyHint: true },
    { readOnlyHint: true, destructiveHint: false },
    { readOnlyHint: true, openWorldHint: true, idempotentHint: false },
  ])("allows %j", (annotations) => {
    expect(createToolPolicy().judge(toolWith(annotations))).toEqual({ verdict: "allowed" });
  });

  it.each<[ToolAnnotations, string]>([
    [{}, "does not say that it only reads"],
    [{ destructiveHint: false }, "does not say that it only reads"],
    [{ idempotentHint: true, openWorldHint: false }, "does not say that it only reads"],
    [{ readOnlyHint: false }, "says that it changes something"],
    [{ readOnlyHint: false, destructiveHint: false }, "says that it changes something"],
    [{ destructiveHint: true }, "says that it is destructive"],
    [{ readOnlyHint: true, destructiveHint: true }, "says that it is destructive"],
  ])("refuses %j where no one can be asked, and asks otherwise", (annotations, claim) => {
    const tool = toolWith(annotations);
    expect(createToolPolicy().judge(tool)).toMatchObject({
      verdict: "refused",
      why: `delete_order may not be called: it ${claim}, and it is not on the allow-list.`,
      isHidden: claim !== "does not say that it only reads",
    });
    expect(createToolPolicy({ approve: () => Promise.resolve(true) }).judge(tool)).toEqual({ verdict: "ask" });
  });

  it("allows a function of this process unless it says that it changes something", async () => {
    const execute = (): void => {};
    const source = createLocalSource([
      { name: "plain", description: "", execute },
      { name: "drop", description: "", annotations: { destructiveHint: true }, execute },
    ]);
    const { tools } = assignNames([...(await source.tools()).tools]);
    expect(tools.map((tool) => createToolPolicy().judge(tool).verdict)).toEqual(["allowed", "refused"]);
    expect(createToolPolicy({ toolPolicy: "read-only" }).judge(tools[0]!).verdict).toBe("refused");
  });

  it("tells a program how to allow a tool", () => {
    const options = { allow: ["other__delete_order"] };
    expect(createToolPolicy(options).judge(destructive)).toEqual({
      verdict: "refused",
      toolError: {
        ...refusal,
        tool: "delete_order",
        summary:
          'delete_order may not be called: it says that it is destructive, and it is not on the allow-list. To allow it, pass it to the tool policy: createToolPolicy({ allow: ["my_shop__delete_order"] }).',
        hints: [
          "Do without it, and tell the user what you would have changed.",
          "Only the operator of this server can change the allow-list. Show the user the line to add.",
        ],
      },
      why: "delete_order may not be called: it says that it is destructive, and it is not on the allow-list.",
      isHidden: true,
    });
    expect(createToolPolicy({ allow: ["my_shop__delete_order"] }).judge(destructive)).toEqual({ verdict: "allowed" });
  });

  it.each([
    "delete_order",
    "get.rows",
    "files/read",
    "a b",
    'quo"te',
    "star*",
    "*",
    "zeile\nzwei",
    "\u202Egnp",
    "ü",
    "__proto__",
    "x".repeat(200),
    "x".repeat(300),
  ])("prints the line that allows the tool %j of a configured server, beside the entries that are there", (name) => {
    const tool = toolWith({}, name);
    const servers = { "my shop": { command: "x", allow: ["other"] } };
    const judgement = createToolPolicy({ mcpServers: servers }).judge(tool);
    if (judgement.verdict !== "refused") throw new Error("not refused");
    const { summary } = judgement.toolError;
    expect(summary).toContain('in mcpServers["my shop"] of sluice.config.json and start Sluice again');
    const file = { mcpServers: { "my shop": { ...servers["my shop"], ...lineIn(summary) } } };
    const { mcpServers } = configurationSchema.parse(file);
    expect(mcpServers["my shop"]!.allow![0]).toBe("other");
    expect(createToolPolicy({ mcpServers }).judge(tool)).toEqual({ verdict: "allowed" });
    expect(createToolPolicy({ mcpServers }).judge(toolWith({}, "unrelated"))).toMatchObject({ verdict: "refused" });
  });

  it("applies the list of a server to no other server, however their names are written", () => {
    const policy = createToolPolicy({ mcpServers: { a: { allow: ["b__drop", "x"] }, a__b: {}, c: { allow: ["*"] } } });
    const verdictOf = (server: string, name: string): string => policy.judge(toolWith({}, name, server)).verdict;
    expect([verdictOf("a", "b__drop"), verdictOf("a__b", "drop"), verdictOf("b", "x"), verdictOf("toString", "x")]).toEqual([
      "allowed",
      "refused",
      "refused",
      "refused",
    ]);
    expect([verdictOf("c", "anything"), verdictOf("d", "anything")]).toEqual(["allowed", "refused"]);
  });

  it.each(["delete_order", "my_shop__delete_order", "my shop__delete_order", "my_shop__*", "my shop__*"])(
    "allows the tool if %j is on the list",
    (entry) => {
      expect(createToolPolicy({ allow: [entry] }).judge(destructive)).toEqual({ verdict: "allowed" });
    },
  );

  it("ignores a bare name of a tool that has none", () => {
    const { tools } = assignNames(["a", "b"].map((server) => sampleTool({ server, name: "drop", annotations: { destructiveHint: true } })));
    expect(createToolPolicy({ allow: ["drop"] }).judge(tools[0]!)).toMatchObject({ verdict: "refused" });
    expect(createToolPolicy({ allow: ["a__*"] }).judge(tools[1]!)).toMatchObject({ verdict: "refused" });
  });

  it.each(["", "*", "__*", "a*", "a__*b", "a__b*"])("rejects the entry %j", (entry) => {
    expect(() => createToolPolicy({ allow: [entry] })).toThrow(`The allow-list of tools has an invalid entry: ${JSON.stringify(entry)}.`);
  });
});

describe("the policy read-only", () => {
  const policy = createToolPolicy({ toolPolicy: "read-only", allow: ["my_shop__*"], approve: () => Promise.resolve(true) });

  it("requires readOnlyHint of all tools, including those on the list", () => {
    expect(policy.judge(toolWith({ readOnlyHint: true }))).toEqual({ verdict: "allowed" });
    expect(policy.judge(toolWith({ readOnlyHint: false }))).toMatchObject({ verdict: "refused" });
    expect(policy.judge(toolWith({}), "my_shop__delete_order")).toMatchObject({
      verdict: "refused",
      isHidden: true,
      toolError: {
        ...refusal,
        tool: "my_shop__delete_order",
        summary: 'my_shop__delete_order may not be called: the policy is "read-only" and the tool does not say that it only reads.',
        hints: [
          "Use a tool whose readOnlyHint is true; get_schema shows it.",
          'Only the operator of this server can change it: "toolPolicy" in the configuration.',
        ],
      },
    });
  });
});

describe("approval by a person", () => {
  it("decides instead of a refusal", async () => {
    const questions: unknown[] = [];
    const policy = createToolPolicy({
      approve: (tool, args) => {
        questions.push([tool.name, args]);
        return Promise.resolve(args["id"] === 1);
      },
    });
    expect(policy.judge(destructive)).toEqual({ verdict: "ask" });
    expect(await policy.ask(destructive, { id: 1 })).toBeNull();
    expect(await policy.ask(destructive, { id: 2 })).toEqual({
      ...refusal,
      tool: "delete_order",
      summary: "delete_order was not called: it says that it is destructive, and this call was not approved.",
      hints: ["Do not repeat the call. Do without it, and tell the user what you would have changed."],
    });
    expect(questions).toEqual([
      ["delete_order", { id: 1 }],
      ["delete_order", { id: 2 }],
    ]);
  });

  it("is not waited for when the caller aborts", async () => {
    const policy = createToolPolicy({ approve: () => new Promise(() => {}) });
    const abort = new AbortController();
    const answer = policy.ask(destructive, {}, abort.signal);
    abort.abort("enough");
    await expect(answer).rejects.toBe("enough");
  });

  it("counts as refused when asking fails", async () => {
    const policy = createToolPolicy({ approve: () => Promise.reject(new Error("the page was closed")) });
    expect(await policy.ask(destructive, {})).toMatchObject({ error_code: "TOOL_NOT_ALLOWED" });
  });
});

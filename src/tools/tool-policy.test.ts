import { describe, expect, it } from "vitest";
import { assignNames, type CatalogTool } from "./assign-names.ts";
import type { ToolAnnotations } from "./backend-tool.ts";
import { sampleTool } from "./fixtures/sample-tools.ts";
import { createToolPolicy } from "./tool-policy.ts";

function toolWith(annotations: ToolAnnotations, name = "delete_order", server = "my shop"): CatalogTool {
  return assignNames([sampleTool({ server, name, annotations })]).tools[0]!;
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

describe("the policy by annotations", () => {
  it.each<ToolAnnotations>([{}, { readOnlyHint: true }, { destructiveHint: false }, { openWorldHint: true, idempotentHint: false }])(
    "allows %j",
    (annotations) => {
      expect(createToolPolicy().judge(toolWith(annotations))).toEqual({ verdict: "allowed" });
    },
  );

  it("refuses a tool that says that it is destructive, with hints", () => {
    expect(createToolPolicy({ allow: ["other__delete_order"] }).judge(destructive)).toEqual({
      verdict: "refused",
      toolError: {
        ...refusal,
        tool: "delete_order",
        summary: "delete_order may not be called: it says that it is destructive, and it is not on the allow-list.",
        hints: [
          "Do without it, and tell the user what you would have changed.",
          'Only the operator of this server can allow it: add "my_shop__delete_order" (or "my_shop__*") to the allow-list in the configuration.',
        ],
      },
    });
  });

  it("refuses a tool that says that it is not read-only", () => {
    expect(createToolPolicy().judge(toolWith({ readOnlyHint: false }))).toMatchObject({
      toolError: { summary: "delete_order may not be called: it says that it changes something, and it is not on the allow-list." },
    });
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
    expect(policy.judge(toolWith({}), "my_shop__delete_order")).toEqual({
      verdict: "refused",
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

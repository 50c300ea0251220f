import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assignNames, toSafeName } from "./assign-names.ts";
import type { BackendTool, ToolListing, ToolSource } from "./backend-tool.ts";
import { createToolCatalog } from "./create-tool-catalog.ts";
import { sampleSource, sampleTool } from "./fixtures/sample-tools.ts";

function toolOf(server: string, name: string): BackendTool {
  return sampleTool({ server, name });
}

async function namesOf(...tools: BackendTool[]): Promise<string[]> {
  const { tools: listed } = await createToolCatalog({ sources: [sampleSource("s", tools)] }).list();
  return listed.map(({ name }) => name);
}

describe("names of tools", () => {
  it("are bare where that is unambiguous, and full elsewhere", async () => {
    expect(await namesOf(toolOf("a", "get_price"), toolOf("b", "get_price"), toolOf("b", "list_orders"))).toEqual([
      "a__get_price",
      "b__get_price",
      "list_orders",
    ]);
  });

  it("are never reserved names, nor full names of another server's tool", async () => {
    expect(await namesOf(toolOf("a", "execute"), toolOf("b", "bank__transfer"), toolOf("b", "final_response"))).toEqual([
      "a__execute",
      "b__bank__transfer",
      "b__final_response",
    ]);
  });

  it("have only characters that models accept, and the server's own spelling still works", async () => {
    const catalog = createToolCatalog({ sources: [sampleSource("s", [toolOf("my server", "prices.get/all")])] });
    const { tools } = await catalog.list();
    expect(tools.map(({ name, fullName }) => [name, fullName])).toEqual([["prices_get_all", "my_server__prices_get_all"]]);
    for (const name of ["prices_get_all", "my_server__prices_get_all", "my server__prices.get/all", "prices.get/all"]) {
      expect(await catalog.resolve(name)).toEqual({ ok: true, tool: tools[0] });
    }
  });

  it("get a digest and a warning where they would collide or be too long", () => {
    const long = "x".repeat(80);
    expect(
      assignNames([toolOf("a", "b__c"), toolOf("a__b", "c"), toolOf("s", long), toolOf("s", "p.q"), toolOf("s", "p q")]),
    ).toMatchObject({
      tools: [
        { name: "a__b__c_d28d61", bareName: null },
        { name: "c", fullName: "a__b__c_528239" },
        { name: "s__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_d32381" },
        { name: "s__p_q_b317a1" },
        { name: "s__p_q_d39011" },
      ],
      warnings: [
        '"a__b__c" is the name of more than one tool; this one is called a__b__c_d28d61.',
        '"a__b__c" is the name of more than one tool; this one is called a__b__c_528239.',
        `"s__${"x".repeat(76)}…" is longer than 64 characters; this one is called s__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_d32381.`,
        '"s__p.q" is the name of more than one tool; this one is called s__p_q_b317a1.',
        '"s__p q" is the name of more than one tool; this one is called s__p_q_d39011.',
      ],
    });
  });

  it("are unique, valid and resolvable for any names of servers and tools", async () => {
    const word = fc.oneof(
      fc.constantFrom("a", "b", "a__b", "_", "", "get price", "get_price", "search", "x".repeat(70)),
      fc.string({ unit: "binary", maxLength: 80 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(word, word), { maxLength: 12 }), async (pairs) => {
        const tools = pairs.map(([server, name]) => toolOf(server, name));
        const catalog = createToolCatalog({ sources: [sampleSource("s", tools)] });
        const { tools: listed, warnings } = await catalog.list();
        expect(listed.map(({ tool }) => tool)).toEqual(tools);
        const names = listed.flatMap(({ fullName, bareName }) => (bareName === null ? [fullName] : [fullName, bareName]));
        expect(new Set(names).size).toBe(names.length);
        for (const entry of listed) {
          expect(entry.fullName).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          expect(entry.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          for (const name of [entry.name, entry.fullName]) {
            const resolved = await catalog.resolve(name);
            expect(resolved.ok && resolved.tool).toBe(entry);
          }
        }
        const renamed = listed.filter(({ tool, fullName }) => fullName !== `${toSafeName(tool.server)}__${toSafeName(tool.name)}`);
        expect(warnings).toHaveLength(renamed.length);
      }),
    );
  });
});

describe("resolve", () => {
  const market = [toolOf("market", "get_price"), toolOf("market", "get_prices"), toolOf("market", "list_orders")];
  const refusal = {
    error_kind: "tool_not_found",
    details: [],
    examples: [],
    error_code: "TOOL_NOT_FOUND",
    retryable: false,
    _envelope_version: 1,
  };

  it("suggests similar names", async () => {
    expect(await createToolCatalog({ sources: [sampleSource("market", market)] }).resolve("getPrice")).toEqual({
      ok: false,
      toolError: {
        ...refusal,
        tool: "getPrice",
        summary: 'There is no tool "getPrice".',
        hints: ["Did you mean 'get_price' or 'get_prices'?", "search finds tools by what they do; there are 3."],
      },
    });
  });

  it("asks for the server when several have the tool", async () => {
    const catalog = createToolCatalog({ sources: [sampleSource("a", [toolOf("a", "get_price"), toolOf("b", "get_price")])] });
    expect(await catalog.resolve("get_price")).toEqual({
      ok: false,
      toolError: {
        ...refusal,
        tool: "get_price",
        summary: 'There is no tool "get_price".',
        hints: ["Include the server: a__get_price, b__get_price.", "search finds tools by what they do; there are 2."],
      },
    });
  });

  it("reports a server that is down as retryable", async () => {
    const catalog = createToolCatalog({ sources: [sampleSource("market", market), sampleSource("ads", [], "connection refused.")] });
    expect(await catalog.resolve("ads__list_campaigns")).toEqual({
      ok: false,
      toolError: {
        ...refusal,
        error_kind: "upstream_http",
        error_code: "UPSTREAM_UNREACHABLE",
        retryable: true,
        tool: "ads__list_campaigns",
        summary: 'The server "ads" of the tool "ads__list_campaigns" cannot be used now: connection refused.',
        hints: ["Try again later.", "search finds tools by what they do; there are 3 now."],
      },
    });
  });

  it("recognizes the bare name of a tool whose server went down", async () => {
    let listing: ToolListing = { tools: [toolOf("ads", "list_campaigns")], gap: null };
    const ads: ToolSource = { ...sampleSource("ads", []), tools: () => Promise.resolve(listing) };
    const catalog = createToolCatalog({ sources: [ads] });
    expect((await catalog.resolve("list_campaigns")).ok).toBe(true);
    listing = { tools: [], gap: { server: "ads", reason: "It is down." } };
    expect(await catalog.resolve("list_campaigns")).toMatchObject({
      ok: false,
      toolError: {
        error_code: "UPSTREAM_UNREACHABLE",
        summary: 'The server "ads" of the tool "list_campaigns" cannot be used now: It is down.',
      },
    });
    expect(await catalog.resolve("list_campaign")).toMatchObject({ ok: false, toolError: { error_code: "TOOL_NOT_FOUND" } });
  });

  it("does not give a bare name to another tool because a server went down", async () => {
    const a = sampleSource("a", [toolOf("a", "get_price")]);
    let isDown = false;
    const up: ToolListing = { tools: [toolOf("b", "get_price")], gap: null };
    const down: ToolListing = { tools: [], gap: { server: "b", reason: "It is down." } };
    const b: ToolSource = { ...a, name: "b", tools: () => Promise.resolve(isDown ? down : up) };
    const catalog = createToolCatalog({ sources: [a, b] });
    expect((await catalog.resolve("get_price")).ok).toBe(false);
    isDown = true;
    expect(await catalog.resolve("get_price")).toMatchObject({
      ok: false,
      toolError: { hints: ["Include the server: a__get_price.", 'Tools of the server "b" are missing: It is down.', expect.any(String)] },
    });
    expect((await catalog.resolve("a__get_price")).ok).toBe(true);
  });
});

describe("sources", () => {
  it("that reject or hang are gaps, and all are listed at the same time", async () => {
    const listed: string[] = [];
    const source = (name: string, tools: () => Promise<ToolListing>): ToolSource => ({
      ...sampleSource(name, []),
      tools: () => {
        listed.push(name);
        return tools();
      },
    });
    const catalog = createToolCatalog({
      sources: [
        source("hangs", () => new Promise(() => {})),
        source("throws", () => Promise.reject(new Error("no such program"))),
        source("works", () => Promise.resolve({ tools: [toolOf("works", "ping")], gap: null })),
      ],
      listTimeoutMs: 20,
    });
    const listing = catalog.list();
    expect(listed).toEqual(["hangs", "throws", "works"]);
    expect(await listing).toMatchObject({
      tools: [{ name: "ping" }],
      gaps: [
        { server: "hangs", reason: "It did not list its tools within 0.02 s." },
        { server: "throws", reason: "no such program" },
      ],
    });
    await catalog.list();
    expect(listed.filter((name) => name === "hangs")).toHaveLength(1);
  });

  it("give the same list while nothing changes, and an abort ends the wait for them", async () => {
    const catalog = createToolCatalog({ sources: [sampleSource("a", [toolOf("a", "ping")]), sampleSource("b", [], "down")] });
    expect(await catalog.list()).toBe(await catalog.list());
    const hanging = createToolCatalog({ sources: [{ ...sampleSource("a", []), tools: () => new Promise(() => {}) }] });
    await expect(hanging.list(AbortSignal.abort("enough"))).rejects.toBe("enough");
    const abort = new AbortController();
    const waiting = hanging.list(abort.signal);
    abort.abort("later");
    await expect(waiting).rejects.toBe("later");
  });
});

import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Earnings, Price, Reserve, Venue } from "../examples/backends/market/market-data.ts";
import { bundledSample } from "../src/config/open-configured.ts";
import type { EvidenceItem } from "../src/evidence/evidence-store.ts";
import { createEvidenceStore } from "../src/evidence/create-evidence-store.ts";
import { createMcpSource } from "../src/tools/mcp/create-mcp-source.ts";
import type { ToolAnswer, ToolSource } from "../src/tools/backend-tool.ts";
import { openHttpProcess } from "./fixtures/open-http-process.ts";

const program = path.join(import.meta.dirname, "../examples/backends/market/market-server.ts");

interface Result {
  content: { type: string; text: string }[];
  structuredContent: Record<string, unknown>;
  isError?: boolean;
}

/** Returns a function that calls tools of a source. */
function createCaller(source: ToolSource) {
  return async (name: string, args: Record<string, unknown> = {}): Promise<Result> => {
    const { tools, gap } = await source.tools();
    expect(gap).toBeNull();
    const answer = await tools.find((tool) => tool.name === name)!.call(args, {});
    return answer.read === undefined ? (answer.output as Result) : await readLarge(name, answer);
  };
}

/** Reads a large answer through evidence: the structured part has an alias, and the text is its attachment. */
async function readLarge(tool: string, answer: ToolAnswer): Promise<Result> {
  const evidence = createEvidenceStore();
  const textOf = (item: EvidenceItem): string => Buffer.from(item.read()).toString();
  const item = await evidence.keep({ tool, ...answer });
  const content = item.attachments.map((alias) => ({ type: "text", text: textOf(evidence.get(alias)!) }));
  return { content, structuredContent: JSON.parse(textOf(item)) as Record<string, unknown> };
}

const rowsOf = <Row>({ structuredContent }: Result): Row[] => structuredContent["rows"] as Row[];

describe("the sample market backend on stdio", () => {
  let source: ToolSource;
  let call: ReturnType<typeof createCaller>;
  let reserves: Reserve[];
  beforeAll(async () => {
    const [[name, server]] = Object.entries(bundledSample()) as [[string, ReturnType<typeof bundledSample>[string]]];
    source = createMcpSource({ name, server });
    call = createCaller(source);
    reserves = rowsOf<Reserve>(await call("get_reserves"));
  });
  afterAll(() => source[Symbol.asyncDispose]());

  it("has four read-only tools with tags and output schemas", async () => {
    const { tools } = await source.tools();
    expect(tools.map(({ name, tags, server }) => [server, name, tags])).toEqual([
      ["market", "list_venues", ["market", "reserves"]],
      ["market", "get_reserves", ["market", "reserves"]],
      ["market", "get_prices", ["market", "prices"]],
      ["market", "get_earnings", ["market", "earnings"]],
    ]);
    expect(tools.every(({ annotations }) => annotations.readOnlyHint === true)).toBe(true);
    expect(tools.every(({ outputSchema }) => outputSchema !== undefined)).toBe(true);
  });

  it("has forty venues, one listed late and one delisted", async () => {
    const venues = (await call("list_venues")).structuredContent["venues"] as Venue[];
    expect(venues).toHaveLength(40);
    expect(venues.filter(({ listed_on }) => listed_on !== "2024-01-01").map(({ venue, listed_on }) => [venue, listed_on])).toEqual([
      ["Harbour", "2025-03-03"],
    ]);
    expect(venues.filter(({ delisted_on }) => delisted_on !== null).map(({ venue, delisted_on }) => [venue, delisted_on])).toEqual([
      ["Quarry", "2025-07-01"],
    ]);
  });

  it("returns two years of daily reserves in one answer of two megabytes", async () => {
    const answer = await call("get_reserves");
    expect(answer.structuredContent).toMatchObject({ asset: "BTC", unit: "BTC" });
    expect(answer.content).toEqual([{ type: "text", text: "28878 rows, in structuredContent" }]);
    expect(reserves).toHaveLength(28_878);
    const bytes = JSON.stringify(reserves).length;
    expect([bytes > 2e6, bytes < 3e6]).toEqual([true, true]);
    expect([reserves[0], reserves.at(-1)]).toEqual([
      { timestamp: "2024-01-01T00:00:00Z", venue: "Alder", reserve: 52_145.863 },
      { timestamp: "2025-12-31T00:00:00Z", venue: "Willow", reserve: 5305.495 },
    ]);
  });

  it("adds a venue late at 35,000, loses one for two weeks, and another permanently", () => {
    const daysOf = (wanted: string): string[] =>
      reserves.filter(({ venue }) => venue === wanted).map(({ timestamp }) => timestamp.slice(0, 10));
    expect(reserves.find(({ venue }) => venue === "Harbour")).toEqual({
      timestamp: "2025-03-03T00:00:00Z",
      venue: "Harbour",
      reserve: 35_000,
    });
    expect(daysOf("Quarry").at(-1)).toBe("2025-06-30");
    const gap = daysOf("Meridian").filter((day) => day > "2024-09-08" && day < "2024-09-26");
    expect(gap).toEqual(["2024-09-09", "2024-09-24", "2024-09-25"]);
    expect(daysOf("Alder")).toHaveLength(731);
  });

  it("has null placeholders, each followed by the sample of the day", () => {
    const nulls = reserves.filter(({ reserve }) => reserve === null);
    expect(nulls).toHaveLength(263);
    expect([...new Set(nulls.map(({ venue }) => venue))].sort()).toEqual(["Beacon", "Larkspur", "Sable"]);
    const samples = new Map(
      reserves
        .filter(({ timestamp }) => timestamp.endsWith("T08:00:00Z"))
        .map((row) => [`${row.venue} ${row.timestamp.slice(0, 10)}`, row.reserve]),
    );
    expect(samples.size).toBe(263);
    expect(nulls.every(({ venue, timestamp }) => typeof samples.get(`${venue} ${timestamp.slice(0, 10)}`) === "number")).toBe(true);
  });

  it("filters by venue, asset and period", async () => {
    const args = { asset: "ETH", venue: "Harbour", start_date: "2025-03-01", end_date: "2025-03-04" };
    expect((await call("get_reserves", args)).structuredContent).toEqual({
      asset: "ETH",
      unit: "ETH",
      rows: [
        { timestamp: "2025-03-03T00:00:00Z", venue: "Harbour", reserve: 350_000 },
        { timestamp: "2025-03-04T00:00:00Z", venue: "Harbour", reserve: expect.any(Number) },
      ],
    });
  });

  it("returns consistent price bars", async () => {
    const prices = rowsOf<Price>(await call("get_prices"));
    expect(prices).toHaveLength(731);
    expect(prices.filter(({ open, high, low, close }) => high < Math.max(open, close) || low > Math.min(open, close))).toEqual([]);
    expect(prices.slice(1).filter(({ open }, index) => open !== prices[index]!.close)).toEqual([]);
  });

  it("returns earnings of one company or of all, reported after their quarter", async () => {
    const all = rowsOf<Earnings>(await call("get_earnings"));
    expect(all).toHaveLength(48);
    expect(rowsOf<Earnings>(await call("get_earnings", { symbol: "FJRD" }))).toEqual(all.filter(({ symbol }) => symbol === "FJRD"));
    expect(all.slice(0, 8).map(({ quarter, reported_on }) => [quarter, reported_on.slice(0, 7)])).toEqual([
      ["2024-Q1", "2024-05"],
      ["2024-Q2", "2024-08"],
      ["2024-Q3", "2024-11"],
      ["2024-Q4", "2025-02"],
      ["2025-Q1", "2025-05"],
      ["2025-Q2", "2025-08"],
      ["2025-Q3", "2025-11"],
      ["2025-Q4", "2026-02"],
    ]);
  });

  it("reports invalid arguments as a tool error", async () => {
    const failed = await call("get_reserves", { venue: "Nowhere" });
    expect([failed.isError, JSON.parse(failed.content[0]!.text)]).toEqual([
      true,
      {
        error_kind: "mcp_input_validation",
        tool: "get_reserves",
        summary: 'venue: there is no venue "Nowhere".',
        details: [{ path: "venue", issue: 'there is no venue "Nowhere"', received_type: "string" }],
        hints: [expect.stringMatching(/^Known: Alder, .*, Willow\.$/)],
        examples: [],
        error_code: "INPUT_VALIDATION_FAILED",
        retryable: false,
        _envelope_version: 1,
      },
    ]);
    const backward = await call("get_prices", { start_date: "2025-01-02", end_date: "2025-01-01" });
    expect(JSON.parse(backward.content[0]!.text)).toMatchObject({ summary: "end_date: is before start_date 2025-01-02." });
  });

  it("returns the same data over HTTP and other data with another seed", async () => {
    await using http = await openHttpProcess(program, "--http", "0");
    await using other = await openHttpProcess(program, "--http", "0", "--seed", "8");
    const [same, different] = await Promise.all(
      [http, other].map(async ({ url }) => {
        await using remote = createMcpSource({ name: "market", server: { url } });
        return rowsOf<Reserve>(await createCaller(remote)("get_reserves"));
      }),
    );
    const text = JSON.stringify(reserves);
    expect([JSON.stringify(same) === text, JSON.stringify(different) === text]).toEqual([true, false]);
  });
});

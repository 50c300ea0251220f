import { McpServer, type CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import {
  assets,
  firstDay,
  lastDay,
  makeEarnings,
  makePrices,
  makeReserves,
  symbols,
  venues,
  type Asset,
  type Price,
  type Reserve,
} from "./market-data.ts";

export interface MarketBackendOptions {
  /** The same seed gives the same data. */
  readonly seed: number;
}

const assetSchema = z.enum(assets).default("BTC");
const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, "must be a date like 2025-01-31");
const period = {
  start_date: date.optional().describe(`First day. Default: ${firstDay}.`),
  end_date: date.optional().describe(`Last day, inclusive. Default: ${lastDay}.`),
};
const venueRows = z.object({
  venues: z.array(
    z.object({
      venue: z.string(),
      region: z.string(),
      kind: z.enum(["exchange", "custodian"]),
      listed_on: z.string(),
      delisted_on: z.string().nullable(),
    }),
  ),
});
const reserveRows = z.object({
  asset: z.string(),
  unit: z.string(),
  rows: z.array(z.object({ timestamp: z.string(), venue: z.string(), reserve: z.number().nullable() })),
});
const priceRows = z.object({
  asset: z.string(),
  currency: z.string(),
  rows: z.array(z.object({ date: z.string(), open: z.number(), high: z.number(), low: z.number(), close: z.number(), volume: z.number() })),
});
const earningRows = z.object({
  rows: z.array(
    z.object({
      symbol: z.string(),
      quarter: z.string(),
      reported_on: z.string(),
      revenue_musd: z.number(),
      eps: z.number(),
      eps_estimate: z.number(),
    }),
  ),
});

/** An MCP server that imitates a market data service. All its tools are read-only. `createServer` creates the MCP server for one connection or one request. */
export function createMarketBackend({ seed }: MarketBackendOptions): { createServer(): McpServer } {
  const reserves = cacheByAsset((asset) => makeReserves(seed, asset));
  const prices = cacheByAsset((asset) => makePrices(seed, asset));

  function createServer(): McpServer {
    const server = new McpServer({ name: "sample-market", version: "1.0.0" }, { capabilities: { tools: {} } });
    const annotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };
    const taggedAs = (tag: string) => ({ annotations, _meta: { tags: ["market", tag] } });

    server.registerTool(
      "list_venues",
      {
        title: "Venues",
        description:
          "The venues whose reserves are known, with their region and kind, and the days on which they were listed and delisted.",
        inputSchema: z.object({}),
        outputSchema: venueRows,
        ...taggedAs("reserves"),
      },
      () => toResult({ venues: [...venues] }),
    );
    server.registerTool(
      "get_reserves",
      {
        title: "Reserves",
        description:
          "Daily reserves of an asset per venue, as long rows {timestamp, venue, reserve}. Default: all venues. A reserve is a level, not a flow. A row may be a null placeholder; the sample of the day then follows a few hours later.",
        inputSchema: z.object({ asset: assetSchema, venue: z.string().optional().describe("As in list_venues."), ...period }),
        outputSchema: reserveRows,
        ...taggedAs("reserves"),
      },
      ({ asset, venue, ...between }) => {
        const wrong = wrongVenue(venue) ?? wrongPeriod(between);
        if (wrong !== null) return toFailure("get_reserves", wrong);
        const rows = reserves(asset).filter((row) => (venue === undefined || row.venue === venue) && isWithin(row.timestamp, between));
        return toResult({ asset, unit: asset, rows });
      },
    );
    server.registerTool(
      "get_prices",
      {
        title: "Prices",
        description: "Open, high, low and close of an asset in US dollars and its volume, one row per day.",
        inputSchema: z.object({ asset: assetSchema, ...period }),
        outputSchema: priceRows,
        ...taggedAs("prices"),
      },
      ({ asset, ...between }) => {
        const wrong = wrongPeriod(between);
        if (wrong !== null) return toFailure("get_prices", wrong);
        return toResult({ asset, currency: "USD", rows: prices(asset).filter((row) => isWithin(row.date, between)) });
      },
    );
    server.registerTool(
      "get_earnings",
      {
        title: "Earnings",
        description: `Revenue and earnings per share by quarter, of one company or of all: ${symbols.join(", ")}.`,
        inputSchema: z.object({ symbol: z.string().optional() }),
        outputSchema: earningRows,
        ...taggedAs("earnings"),
      },
      ({ symbol }) => {
        if (symbol !== undefined && !symbols.includes(symbol)) return toFailure("get_earnings", unknown("symbol", symbol, symbols));
        return toResult({ rows: (symbol === undefined ? symbols : [symbol]).flatMap((one) => makeEarnings(seed, one)) });
      },
    );
    return server;
  }

  return { createServer };
}

interface Period {
  readonly start_date?: string | undefined;
  readonly end_date?: string | undefined;
}

interface Failure {
  readonly path: string;
  readonly issue: string;
  readonly hint: string;
}

function isWithin(time: string, { start_date = firstDay, end_date = lastDay }: Period): boolean {
  const day = time.slice(0, 10);
  return day >= start_date && day <= end_date;
}

function wrongPeriod({ start_date = firstDay, end_date = lastDay }: Period): Failure | null {
  if (start_date <= end_date) return null;
  return { path: "end_date", issue: `is before start_date ${start_date}`, hint: `There is data from ${firstDay} to ${lastDay}.` };
}

function wrongVenue(venue: string | undefined): Failure | null {
  const known = venues.map((one) => one.venue);
  return venue === undefined || known.includes(venue) ? null : unknown("venue", venue, known);
}

function unknown(path: string, value: string, known: readonly string[]): Failure {
  return { path, issue: `there is no ${path} ${JSON.stringify(value.slice(0, 100))}`, hint: `Known: ${known.join(", ")}.` };
}

/** Returns a v1 error object as compact JSON text in a result with `isError`. */
function toFailure(tool: string, { path, issue, hint }: Failure): CallToolResult {
  const toolError = {
    error_kind: "mcp_input_validation",
    tool,
    summary: `${path}: ${issue}.`,
    details: [{ path, issue, received_type: "string" }],
    hints: [hint],
    examples: [],
    error_code: "INPUT_VALIDATION_FAILED",
    retryable: false,
    _envelope_version: 1,
  };
  return { content: [{ type: "text", text: JSON.stringify(toolError) }], isError: true };
}

/** The text of a large result is short, because `structuredContent` already has the data. */
function toResult(value: { rows?: readonly unknown[] } & Record<string, unknown>): CallToolResult {
  const { rows = [] } = value;
  const text = rows.length > 100 ? `${rows.length} rows, in structuredContent` : JSON.stringify(value);
  return { content: [{ type: "text", text }], structuredContent: value };
}

/** Caches the data of each asset. */
function cacheByAsset<Rows extends Reserve[] | Price[]>(make: (asset: Asset) => Rows): (asset: Asset) => Rows {
  const cache = new Map<Asset, Rows>();
  return (asset) => {
    const rows = cache.get(asset) ?? make(asset);
    cache.set(asset, rows);
    return rows;
  };
}

import { createRandom } from "../create-random.ts";

/**
 * Made-up market data: reserves of venues, prices of assets, earnings of companies. It depends only on the seed, never on the clock or the machine. It has
 * the defects of real data on purpose; `oddities` lists them.
 */
export const assets = ["BTC", "ETH"] as const;
export type Asset = (typeof assets)[number];

export const firstDay = "2024-01-01";
export const lastDay = "2025-12-31";

export interface Venue {
  readonly venue: string;
  readonly region: string;
  readonly kind: "exchange" | "custodian";
  readonly listed_on: string;
  readonly delisted_on: string | null;
}

export interface Reserve {
  readonly timestamp: string;
  readonly venue: string;
  readonly reserve: number | null;
}

export interface Price {
  readonly date: string;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
}

export interface Earnings {
  readonly symbol: string;
  readonly quarter: string;
  readonly reported_on: string;
  readonly revenue_musd: number;
  readonly eps: number;
  readonly eps_estimate: number;
}

/** Defects of the reserves, as in real data. */
const oddities = {
  /** First listed in the middle of the period, with 35,000 from the first day. */
  listedLate: { venue: "Harbour", on: "2025-03-03", reserve: { BTC: 35_000, ETH: 350_000 } },
  /** Has no rows from the first of these days to the last. */
  reportingGap: { venue: "Meridian", from: "2024-09-10", to: "2024-09-23" },
  /** Delisted on this day. The last row is the day before. */
  delisted: { venue: "Quarry", on: "2025-07-01" },
  /** On some days, has a row with null at midnight and the sample a few hours later. */
  placeholders: ["Beacon", "Larkspur", "Sable"],
} as const;

const names = [
  ...["Alder", "Anchor", "Basalt", "Beacon", "Birch", "Cedar", "Cinder", "Compass", "Copper", "Delta"],
  ...["Ember", "Falcon", "Fjord", "Garnet", "Granite", "Harbour", "Heron", "Indigo", "Juniper", "Kestrel"],
  ...["Lantern", "Larkspur", "Ledger", "Marble", "Meridian", "Northgate", "Onyx", "Orchard", "Osprey", "Pioneer"],
  ...["Quarry", "Quartz", "Raven", "Sable", "Summit", "Tamarack", "Tidewater", "Umber", "Vesper", "Willow"],
];
const regions = ["americas", "europe", "asia"];

export const venues: readonly Venue[] = names.map((venue, index) => ({
  venue,
  region: regions[index % regions.length]!,
  kind: index % 5 === 4 ? "custodian" : "exchange",
  listed_on: venue === oddities.listedLate.venue ? oddities.listedLate.on : firstDay,
  delisted_on: venue === oddities.delisted.venue ? oddities.delisted.on : null,
}));

/** Returns long rows, sorted by day and then by venue. */
export function makeReserves(seed: number, asset: Asset): Reserve[] {
  const series = venues.map((venue) => makeSeries(seed, asset, venue));
  return days.flatMap((_, day) => series.flatMap((one) => one[day] ?? []));
}

/** Returns the rows of one venue for a day: one, none, or a placeholder and the sample. */
function makeSeries(seed: number, asset: Asset, { venue, listed_on, delisted_on }: Venue): Reserve[][] {
  const random = createRandom(`${seed}/${asset}/${venue}`);
  const size = asset === "BTC" ? 1 : 10;
  const start = (4_000 + random() * random() * 180_000) * size;
  const drift = (random() - 0.56) * 0.0006;
  const placeholders = (oddities.placeholders as readonly string[]).includes(venue);
  let level = venue === oddities.listedLate.venue ? oddities.listedLate.reserve[asset] : start;
  return days.map((day) => {
    const [noise, chance] = [random() + random() - 1, random()];
    if (day < listed_on || (delisted_on !== null && day >= delisted_on)) return [];
    if (day > listed_on) level *= 1 + drift + noise * 0.008;
    const { venue: silent, from, to } = oddities.reportingGap;
    if (venue === silent && day >= from && day <= to) return [];
    const sample = (hour: string): Reserve => ({ timestamp: `${day}T${hour}:00:00Z`, venue, reserve: round(level, 3) });
    return placeholders && chance < 0.12 ? [{ timestamp: `${day}T00:00:00Z`, venue, reserve: null }, sample("08")] : [sample("00")];
  });
}

export function makePrices(seed: number, asset: Asset): Price[] {
  const random = createRandom(`${seed}/${asset}/price`);
  let close = asset === "BTC" ? 42_000 : 2_300;
  return days.map((date) => {
    const open = close;
    close = open * (1.0007 + (random() + random() - 1) * 0.03);
    const high = Math.max(open, close) * (1 + random() * 0.01);
    const low = Math.min(open, close) * (1 - random() * 0.01);
    return {
      date,
      open: round(open, 2),
      high: round(high, 2),
      low: round(low, 2),
      close: round(close, 2),
      volume: Math.round(2e10 * (0.5 + random())),
    };
  });
}

export const symbols: readonly string[] = ["ALDR", "BSLT", "CMPS", "FJRD", "KSTL", "NGTE"];

/** Returns eight quarters per company. */
export function makeEarnings(seed: number, symbol: string): Earnings[] {
  const random = createRandom(`${seed}/${symbol}/earnings`);
  let revenue = 120 + random() * 900;
  return [2024, 2025].flatMap((year) =>
    [1, 2, 3, 4].map((quarter) => {
      revenue *= 0.92 + random() * 0.2;
      const estimate = revenue / 400;
      const reported = quarter === 4 ? `${year + 1}-02` : `${year}-${String(quarter * 3 + 2).padStart(2, "0")}`;
      return {
        symbol,
        quarter: `${year}-Q${quarter}`,
        reported_on: `${reported}-${String(5 + Math.floor(random() * 20)).padStart(2, "0")}`,
        revenue_musd: round(revenue, 1),
        eps: round(estimate * (0.85 + random() * 0.3), 2),
        eps_estimate: round(estimate, 2),
      };
    }),
  );
}

const DAY = 86_400_000;

const days: readonly string[] = Array.from({ length: (Date.parse(lastDay) - Date.parse(firstDay)) / DAY + 1 }, (_, index) =>
  new Date(Date.parse(firstDay) + index * DAY).toISOString().slice(0, 10),
);

function round(value: number, digits: number): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}

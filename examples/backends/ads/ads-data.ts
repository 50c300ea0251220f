import { createRandom } from "../create-random.ts";

/** Made-up advertising data. It depends only on the seed, never on the clock or the machine. */
export const regions = ["na", "eu", "fe"] as const;
type Region = (typeof regions)[number];

export interface Profile {
  readonly profile_id: string;
  readonly identity: string;
  readonly region: Region;
  readonly country: string;
  readonly currency: string;
}

export interface Campaign {
  readonly campaign_id: string;
  readonly name: string;
  readonly state: "enabled" | "paused" | "archived";
  readonly daily_budget: number;
  readonly start_date: string;
}

export interface AdGroup {
  readonly ad_group_id: string;
  readonly campaign_id: string;
  readonly name: string;
  readonly default_bid: number;
}

export interface DailyMetrics {
  readonly date: string;
  readonly impressions: number;
  readonly clicks: number;
  readonly cost: number;
  readonly sales: number;
}

export interface SearchTerm {
  readonly search_term: string;
  readonly campaign_id: string;
  readonly match_type: string;
  readonly impressions: number;
  readonly clicks: number;
  readonly cost: number;
}

export const identities = ["acme", "globex"] as const;

const places: Readonly<Record<Region, readonly [string, string]>> = { na: ["US", "USD"], eu: ["DE", "EUR"], fe: ["JP", "JPY"] };

/** Each identity has one profile in each region: `na-acme`, `eu-globex`. */
export const profiles: readonly Profile[] = regions.flatMap((region) =>
  identities.map((identity) => {
    const [country, currency] = places[region];
    return { profile_id: `${region}-${identity}`, identity, region, country, currency };
  }),
);

const CAMPAIGNS = 57;
const nouns = ["Shoes", "Lamps", "Tents", "Mugs", "Bikes", "Chairs", "Radios", "Coats"];

export function makeCampaigns(seed: number, profileId: string): Campaign[] {
  return Array.from({ length: CAMPAIGNS }, (_, index) => {
    const number = index + 1;
    const random = createRandom(`${seed}/${profileId}/${number}`);
    const chance = random();
    return {
      campaign_id: `${profileId}-c${String(number).padStart(3, "0")}`,
      name: `${nouns[number % nouns.length]} ${number}`,
      state: chance < 0.7 ? "enabled" : chance < 0.9 ? "paused" : "archived",
      daily_budget: 10 + Math.floor(random() * 490),
      start_date: toDate(Date.UTC(2025, 0, 1) + Math.floor(random() * 365) * DAY),
    };
  });
}

export function makeAdGroups(seed: number, campaignId: string): AdGroup[] {
  const random = createRandom(`${seed}/${campaignId}/groups`);
  return Array.from({ length: 2 + Math.floor(random() * 4) }, (_, index) => ({
    ad_group_id: `${campaignId}-g${index + 1}`,
    campaign_id: campaignId,
    name: `Group ${index + 1}`,
    default_bid: roundCents(0.2 + random() * 2),
  }));
}

/** Returns one row per day, including both ends. Weekends have less traffic, and campaigns differ in size. */
export function makeMetrics(seed: number, campaignId: string, startDate: string, endDate: string): DailyMetrics[] {
  const size = 500 + createRandom(`${seed}/${campaignId}/size`)() * 9_500;
  const rows: DailyMetrics[] = [];
  for (let at = Date.parse(startDate); at <= Date.parse(endDate); at += DAY) {
    const random = createRandom(`${seed}/${campaignId}/${at}`);
    const weekday = new Date(at).getUTCDay();
    const impressions = Math.round(size * (weekday === 0 || weekday === 6 ? 0.7 : 1) * (0.8 + 0.4 * random()));
    const clicks = Math.round(impressions * (0.005 + 0.01 * random()));
    const cost = roundCents(clicks * (0.3 + 0.5 * random()));
    rows.push({ date: toDate(at), impressions, clicks, cost, sales: roundCents(cost * (1 + 5 * random())) });
  }
  return rows;
}

/** Returns about 5 MB of JSON. */
export function makeSearchTerms(seed: number, profileId: string): SearchTerm[] {
  const random = createRandom(`${seed}/${profileId}/terms`);
  return Array.from({ length: 37_500 }, (_, index) => ({
    search_term: `${nouns[index % nouns.length]!.toLowerCase()} model ${index} ${random() < 0.5 ? "cheap" : "near me"}`,
    campaign_id: `${profileId}-c${String((index % CAMPAIGNS) + 1).padStart(3, "0")}`,
    match_type: index % 3 === 0 ? "exact" : "broad",
    impressions: Math.floor(random() * 5_000),
    clicks: Math.floor(random() * 50),
    cost: roundCents(random() * 40),
  }));
}

const DAY = 86_400_000;

function toDate(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function roundCents(amount: number): number {
  return Math.round(amount * 100) / 100;
}

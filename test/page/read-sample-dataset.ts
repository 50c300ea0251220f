import type { TurnDocument } from "../../src/protocol/http-turns.ts";
import type { PageServer } from "./open-page-server.ts";

export interface SampleDataset {
  /** As the cell returned them. */
  readonly monthly: readonly { readonly month: string; readonly net_flow: number }[];
  /** Totals of all venues by day, computed here. */
  readonly totals: readonly (readonly [day: string, total: number])[];
}

interface Document {
  readonly outputs: readonly { readonly alias: string; readonly value: unknown }[];
}

/** Reads the numbers behind the sample's figure and chart from the turn's dataset. */
export async function readSampleDataset(server: PageServer, turn: TurnDocument): Promise<SampleDataset> {
  const { outputs } = await server.call<Document>("GET", `/data/${turn.result?.dataset?.datasetId}.json`);
  const valueOf = (wanted: string): unknown => outputs.find(({ alias }) => alias === wanted)?.value;
  const { rows } = valueOf("get_reserves_1") as { rows: { timestamp: string; reserve: number | null }[] };
  const days = new Map<string, number>();
  for (const { timestamp, reserve } of rows) days.set(timestamp.slice(0, 10), (days.get(timestamp.slice(0, 10)) ?? 0) + (reserve ?? 0));
  return { monthly: (valueOf("result_1") as SampleDataset).monthly, totals: [...days] };
}

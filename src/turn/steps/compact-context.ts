import type { EvidenceStore, Preview } from "../../evidence/contract.ts";
import type { TurnBudgets } from "../budgets.ts";
import type { Observation, Observations } from "../observations.ts";

export interface CompactOptions {
  readonly observations: Observations;
  readonly evidence: EvidenceStore;
  readonly budgets: Pick<TurnBudgets, "previewBytes" | "stepBytes" | "answerBytes">;
}

/** What is cut is cut to this share of the budget, so that the next steps change nothing, and a provider's cache of the prompt holds. */
const SHARE = 0.75;

/**
 * Makes what the model rereads fit. Previews share one budget and other answers another; the oldest give way first, and keep their alias. The evidence is
 * whole whatever is shown of it. As long as all fits, nothing changes.
 */
export function compactContext(options: CompactOptions): void {
  compactPreviews(options);
  compactAnswers(options);
}

function compactPreviews({ observations, evidence, budgets }: CompactOptions): void {
  const shown = [...observations.entries()].filter(([, { previews }]) => previews.length > 0);
  if (bytesOf(shown) <= budgets.stepBytes) return;
  const aliases = shown.flatMap(([, observation]) => observation.previews);
  const previews = evidence.previewStep(aliases, {
    maxBytes: Math.floor(budgets.stepBytes * SHARE),
    maxBytesPerOutput: budgets.previewBytes,
  });
  const list = previews.find(({ alias }) => alias === null);
  const byAlias = new Map(previews.map((preview) => [preview.alias, preview]));
  for (const [index, [callId, observation]] of shown.entries())
    observations.add(callId, { ...observation, text: toText(observation.previews, byAlias, index === 0 ? list : undefined) });
}

/** What has no room of its own is in the list, which stands where the oldest was. */
function toText(aliases: readonly string[], byAlias: ReadonlyMap<string | null, Preview>, list: Preview | undefined): string {
  const own = aliases.flatMap((alias) => byAlias.get(alias)?.json ?? []);
  const texts = [...(list === undefined ? [] : [list.json]), ...own];
  return texts.length > 0 ? texts.join("\n") : JSON.stringify({ alias: aliases[0] });
}

/** The newest stays whole: it is what the model asked for last. */
function compactAnswers({ observations, budgets }: CompactOptions): void {
  const shown = [...observations.entries()].filter(([, { previews }]) => previews.length === 0);
  let bytes = bytesOf(shown);
  if (bytes <= budgets.answerBytes) return;
  for (const [callId, observation] of shown.slice(0, -1)) {
    if (bytes <= budgets.answerBytes * SHARE) return;
    const { text, brief } = observation;
    if (brief.length >= text.length) continue;
    bytes -= Buffer.byteLength(text) - Buffer.byteLength(brief);
    observations.add(callId, { ...observation, text: brief });
  }
}

function bytesOf(shown: readonly (readonly [string, Observation])[]): number {
  return shown.reduce((sum, [, { text }]) => sum + Buffer.byteLength(text), 0);
}

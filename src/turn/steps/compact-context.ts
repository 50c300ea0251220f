import type { EvidenceStore, Preview } from "../../evidence/contract.ts";
import type { TurnBudgets } from "../budgets.ts";
import { clip } from "../clip.ts";
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

/** The newest is what the model asked for last, and has a bound of its own. Of the others the oldest give way first: to what is brief, then altogether. */
function compactAnswers({ observations, budgets }: CompactOptions): void {
  const shown = [...observations.entries()].filter(([, { previews }]) => previews.length === 0);
  const newest = shown.pop();
  if (newest !== undefined) shortenTo(newest, clip(newest[1].text, LONGEST_CHARACTERS));
  let bytes = bytesOf(shown);
  if (bytes <= budgets.answerBytes) return;
  for (const shorter of [({ brief }: Observation) => brief, () => leftOut])
    for (const one of shown) {
      if (bytes <= budgets.answerBytes * SHARE) return;
      bytes -= shortenTo(one, shorter(observations.get(one[0])!));
    }

  /** Gives how many bytes that saves. */
  function shortenTo([callId]: readonly [string, Observation], text: string): number {
    const before = observations.get(callId)!;
    if (text.length >= before.text.length) return 0;
    observations.add(callId, { ...before, text });
    return Buffer.byteLength(before.text) - Buffer.byteLength(text);
  }
}

/** More than a script can say with all of its result and prints. */
const LONGEST_CHARACTERS = 163_840;
const leftOut = JSON.stringify({ note: "Left out to make room." });

function bytesOf(shown: readonly (readonly [string, Observation])[]): number {
  return shown.reduce((sum, [, { text }]) => sum + Buffer.byteLength(text), 0);
}

import type { EvidenceStore, Preview } from "../../evidence/evidence-store.ts";
import type { TurnBudgets } from "../budgets.ts";
import type { CallResult } from "./turn-calls.ts";
import { clipText, leftOutNote } from "../../text/clip-text.ts";

/** What a model reads of one call. */
interface Observation {
  text: string;
  readonly isError: boolean;
  /** Outputs whose previews the text is; they are made anew, smaller, when there are too many. Empty for any other answer. */
  readonly previews: readonly string[];
  /** What is left of another answer when it has to give way. */
  readonly brief: string;
}

/** What the model reads of its calls, by the id of the call, in the order in which the answers came. */
export interface Observations {
  add(callId: string, result: Pick<CallResult, "text" | "status" | "previews" | "brief">): void;
  get(callId: string): Readonly<Pick<Observation, "text" | "isError">> | null;
  /** Everything that was read, as it was before it had to give way. */
  texts(): Iterable<string>;
  /**
   * Makes what the model rereads fit. Previews share one budget and other answers another; the oldest give way first, and keep their alias. The evidence
   * is whole whatever is shown of it. As long as all fits, nothing changes.
   */
  compact(): void;
}

export interface ObservationsOptions {
  readonly evidence: Pick<EvidenceStore, "previewStep">;
  readonly budgets: Pick<TurnBudgets, "previewBytes" | "stepBytes" | "answerBytes">;
}

/** What is cut is cut to this share of the budget, so that the next steps change nothing, and a provider's cache of the prompt holds. */
const SHARE = 0.75;
const BRIEF_CHARACTERS = 600;
/** More than a script can say with all of its result and prints. */
const LONGEST_CHARACTERS = 163_840;
const leftOut = JSON.stringify({ note: "Left out to make room." });

export function createObservations({ evidence, budgets }: ObservationsOptions): Observations {
  const byCall = new Map<string, Observation>();
  const texts: string[] = [];

  return {
    add(callId, { text, status, previews = [], brief = clipText(text, BRIEF_CHARACTERS, leftOutNote) }) {
      byCall.set(callId, { text, isError: status !== "ok", previews, brief });
      texts.push(text);
    },
    get: (callId) => byCall.get(callId) ?? null,
    texts: () => texts,
    compact() {
      const all = [...byCall.values()];
      compactPreviews(all.filter(({ previews }) => previews.length > 0));
      compactAnswers(all.filter(({ previews }) => previews.length === 0));
    },
  };

  function compactPreviews(shown: readonly Observation[]): void {
    if (bytesOf(shown) <= budgets.stepBytes) return;
    const previews = evidence.previewStep(
      shown.flatMap((observation) => observation.previews),
      { maxBytes: Math.floor(budgets.stepBytes * SHARE), maxBytesPerOutput: budgets.previewBytes },
    );
    const list = previews.find(({ alias }) => alias === null);
    const byAlias = new Map(previews.map((preview) => [preview.alias, preview]));
    for (const [index, observation] of shown.entries())
      observation.text = toText(observation.previews, byAlias, index === 0 ? list : undefined);
  }

  /** The newest is what the model asked for last, and has a bound of its own. Of the others the oldest give way first: to what is brief, then altogether. */
  function compactAnswers(shown: Observation[]): void {
    const newest = shown.pop();
    if (newest !== undefined) newest.text = clipText(newest.text, LONGEST_CHARACTERS, leftOutNote);
    let bytes = bytesOf(shown);
    if (bytes <= budgets.answerBytes) return;
    for (const shorter of [({ brief }: Observation) => brief, () => leftOut])
      for (const one of shown) {
        if (bytes <= budgets.answerBytes * SHARE) return;
        const text = shorter(one);
        if (text.length >= one.text.length) continue;
        bytes -= Buffer.byteLength(one.text) - Buffer.byteLength(text);
        one.text = text;
      }
  }
}

/** What has no room of its own is in the list, which stands where the oldest was. */
function toText(aliases: readonly string[], byAlias: ReadonlyMap<string | null, Preview>, list: Preview | undefined): string {
  const own = aliases.flatMap((alias) => byAlias.get(alias)?.json ?? []);
  const texts = [...(list === undefined ? [] : [list.json]), ...own];
  return texts.length > 0 ? texts.join("\n") : JSON.stringify({ alias: aliases[0] });
}

function bytesOf(shown: readonly Observation[]): number {
  return shown.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

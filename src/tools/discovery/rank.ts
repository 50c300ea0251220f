/** A text to be found, as its words with how much each place counts. */
export interface IndexedText<Item> {
  readonly item: Item;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

export interface RankingIndex<Item> {
  /** The items that have any of the words, the best first; equals stay in their order. */
  rank(words: readonly string[]): readonly Item[];
}

const K1 = 1.2;
const B = 0.75;

/** BM25 over a few hundred short texts. A word also finds longer ones that begin with it, for less. */
export function createRankingIndex<Item>(texts: readonly IndexedText<Item>[]): RankingIndex<Item> {
  const documents = new Map<string, number>();
  for (const { counts } of texts) for (const word of counts.keys()) documents.set(word, (documents.get(word) ?? 0) + 1);
  const average = texts.reduce((sum, { length }) => sum + length, 0) / Math.max(1, texts.length) || 1;

  return {
    rank(words) {
      const terms = [...new Set(words)].map((word) => expand(word, documents));
      const scored = texts.map((text) => ({ item: text.item, score: terms.reduce((sum, term) => sum + scoreOf(text, term), 0) }));
      return scored
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score)
        .map(({ item }) => item);
    },
  };

  /** Of the words that a term stands for, the one that counts most. */
  function scoreOf({ counts, length }: IndexedText<Item>, term: ReadonlyMap<string, number>): number {
    let best = 0;
    for (const [word, weight] of term) {
      const count = counts.get(word);
      if (count === undefined) continue;
      const idf = Math.log(1 + (texts.length - documents.get(word)! + 0.5) / (documents.get(word)! + 0.5));
      best = Math.max(best, (weight * idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / average)));
    }
    return best;
  }
}

function expand(word: string, known: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const words = new Map<string, number>(known.has(word) ? [[word, 1]] : []);
  if (word.length < 3) return words;
  for (const other of known.keys())
    if (other !== word && (other.startsWith(word) || (other.length > 3 && word.startsWith(other)))) words.set(other, 0.6);
  return words;
}

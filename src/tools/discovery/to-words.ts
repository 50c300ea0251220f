/** Words that say nothing about a tool. */
const stopWords = new Set(
  "a an and are as at be by can do does for from get have how i if in into is it its me my of on or that the this to use want what when which with you your".split(
    " ",
  ),
);

const MAX_CHARACTERS = 20_000;

/** Lower-case words of a text: names are split at `_`, `-` and humps; of plurals the singular. */
export function toWords(text: string): string[] {
  const words = text
    .slice(0, MAX_CHARACTERS)
    .normalize("NFKC")
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .map(toStem);
  const telling = words.filter((word) => !stopWords.has(word));
  return telling.length > 0 ? telling : words;
}

/** Enough for names of tools: `campaigns` is `campaign`, `queries` is `query`. */
function toStem(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  if (word.length > 3 && word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1);
  return word;
}

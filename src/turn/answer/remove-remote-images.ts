/**
 * An image in an answer is a request to wherever it points, with whatever a tool's output made the model put into its address. Only our own artifacts
 * stay. The words of an image are kept; what only looks like the start of one becomes a link, which shows its address.
 */
export function removeRemoteImages(text: string, ownUrls: ReadonlySet<string>): string {
  let before = text.replaceAll(KEPT, "");
  // What is left of one can be the beginning of another, so until nothing changes; each pass makes it shorter.
  for (let pass = 0; pass < PASSES; pass += 1) {
    const after = removeOnce(before, ownUrls);
    if (after === before) return after.replaceAll(KEPT, "![");
    before = after;
  }
  return removeOnce(before.replaceAll("<", ""), ownUrls).replaceAll(KEPT, "![");
}

/** Who nests deeper means no good, and gets no tags at all. */
const PASSES = 20;

function removeOnce(text: string, ownUrls: ReadonlySet<string>): string {
  return text
    .replaceAll(activeTag, "")
    .replaceAll(inlineImage, (whole, alt: string, url: string) => (ownUrls.has(url) ? whole.replace("![", KEPT) : alt))
    .replaceAll(referenceImage, (_whole, alt: string) => alt)
    .replaceAll(/!+\[/g, "[");
}

/** Stands for the start of an image of our own meanwhile; it cannot be in an answer. */
const KEPT = "\u0000";
/** All lengths are bounded, and no word of an image begins another one: a text made for it could hold everybody up otherwise. What does not fit becomes a link. */
const inlineImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\(\s{0,10}<?([^\s()<>]{0,4000})>?[^()]{0,1000}\)/g;
const referenceImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\[[^[\]]{0,1000}\]/g;
const activeTag =
  /<\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|script|input|meta|base|body|form)\b[^>]*>?/gi;

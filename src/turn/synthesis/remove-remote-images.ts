/**
 * An image in an answer is a request to wherever it points, with whatever a tool's output made the model put into its address. Only our own artifacts
 * stay. The words of an image are kept; what only looks like the start of one becomes a link, which shows its address.
 */
export function removeRemoteImages(text: string, ownUrls: ReadonlySet<string>): string {
  let before = text.replaceAll(KEPT, "");
  // What is left of one can be the beginning of another, so until nothing changes; each pass makes it shorter.
  for (;;) {
    const after = removeOnce(before, ownUrls);
    if (after === before) return after.replaceAll(KEPT, "![");
    before = after;
  }
}

function removeOnce(text: string, ownUrls: ReadonlySet<string>): string {
  return text
    .replaceAll(activeTag, "")
    .replaceAll(inlineImage, (whole, alt: string, url: string) => (ownUrls.has(url) ? whole.replace("![", KEPT) : alt))
    .replaceAll(referenceImage, (_whole, alt: string) => alt)
    .replaceAll(/!+\[/g, "[");
}

/** Stands for the start of an image of our own meanwhile; it cannot be in an answer. */
const KEPT = "\u0000";
const inlineImage = /!\[((?:[^\]\\]|\\.)*)\]\(\s*<?([^\s)>]*)>?[^)]*\)/g;
const referenceImage = /!\[((?:[^\]\\]|\\.)*)\]\[[^\]]*\]/g;
const activeTag =
  /<\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|script|input|meta|base|body|form)\b[^>]*>?/gi;

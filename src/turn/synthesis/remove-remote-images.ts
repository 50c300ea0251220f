/**
 * An image in an answer is a request to wherever it points, with whatever a tool's output made the model put into its address. Only our own artifacts
 * stay. The words of an image are kept; what only looks like the start of one becomes a link, which shows its address.
 */
export function removeRemoteImages(text: string, ownUrls: ReadonlySet<string>): string {
  return text
    .replaceAll(KEPT, "")
    .replaceAll(inlineImage, (whole, alt: string, url: string) => (ownUrls.has(url) ? whole.replace("![", KEPT) : alt))
    .replaceAll(referenceImage, (_whole, alt: string) => alt)
    .replaceAll("![", "[")
    .replaceAll(KEPT, "![")
    .replaceAll(activeTag, "");
}

/** Cannot be in an answer: it is removed from it before. */
const KEPT = "\u0000";
const inlineImage = /!\[((?:[^\]\\]|\\.)*)\]\(\s*<?([^\s)>]*)>?[^)]*\)/g;
const referenceImage = /!\[((?:[^\]\\]|\\.)*)\]\[[^\]]*\]/g;
const activeTag =
  /<\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|script|input|meta|base|body|form)\b[^>]*>?/gi;

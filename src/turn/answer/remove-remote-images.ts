/**
 * Removes images and active HTML tags, except images of the turn's own artifacts. Rendering a remote image sends its URL to a foreign server, and a tool
 * output can make the model put data into that URL. The alt text is kept; an incomplete image becomes a link, which shows its URL.
 */
export function removeRemoteImages(text: string, ownUrls: ReadonlySet<string>): string {
  let before = text.replaceAll(KEPT, "");
  // Removing one image can create another, so repeat until nothing changes. Every pass shortens the text.
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const after = removeOnce(before, ownUrls);
    if (after === before) return after.replaceAll(KEPT, "![");
    before = after;
  }
  return removeOnce(before.replaceAll("<", ""), ownUrls).replaceAll(KEPT, "![");
}

/** Deeper nesting is an attack: then all tags are removed. */
const MAX_PASSES = 20;

function removeOnce(text: string, ownUrls: ReadonlySet<string>): string {
  return text
    .replaceAll(activeTag, "")
    .replaceAll(inlineImage, (image, alt: string, url: string) => (ownUrls.has(url) ? image.replace("![", KEPT) : alt))
    .replaceAll(referenceImage, (_image, alt: string) => alt)
    .replaceAll(/!+\[/g, "[");
}

/** Temporarily replaces `![` of own images. Removed from the input first, so that an answer cannot contain it. */
const KEPT = "\u0000";
/** All repetitions are bounded, so that a crafted text cannot make matching slow. A longer image becomes a link. */
const inlineImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\(\s{0,10}<?([^\s()<>]{0,4000})>?[^()]{0,1000}\)/g;
const referenceImage = /!\[((?:[^[\]\\]|\\.){0,1000})\]\[[^[\]]{0,1000}\]/g;
const activeTag =
  /<\/?(?:img|image|picture|source|video|audio|track|iframe|frame|object|embed|svg|link|style|script|input|meta|base|body|form)\b[^>]*>?/gi;

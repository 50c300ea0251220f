/** What the page's files are compressed as when it is built, the smaller first, and how such a file ends. */
const encodings = [
  { encoding: "br", ending: ".br" },
  { encoding: "gzip", ending: ".gz" },
] as const;

/** Those that the client takes. Browsers take `br` only where nobody in between could stumble over it: over TLS and on loopback. */
export function acceptedEncodings(request: Request): readonly { readonly encoding: string; readonly ending: string }[] {
  const offers = (request.headers.get("accept-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((offer) => offer.split(";").map((part) => part.trim()));
  const refuses = (parameters: readonly string[]): boolean => parameters.some((one) => /^q=0(?:\.0*)?$/.test(one));
  return encodings.filter(({ encoding }) => {
    const [, ...parameters] = offers.find(([name]) => name === encoding) ?? offers.find(([name]) => name === "*") ?? ["", "q=0"];
    return !refuses(parameters);
  });
}

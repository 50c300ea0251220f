/**
 * A link in an answer can be made to look like another by what a tool said. So its address stands beside its words; links to this server's own files stay as
 * they are, and so do images, of which only our own are left.
 */
export function showLinkAddresses(text: string): string {
  return text
    .replaceAll(inlineLink, (whole, words: string, address: string) => {
      if (isOwn(address)) return whole;
      return words.trim() === address ? `<${address}>` : `${words} (<${address}>)`;
    })
    .replaceAll(definition, (_whole, before: string, name: string, address: string) => `${before}${name}: <${address}>`);
}

const inlineLink = /(?<!!)\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s)<>]+)>?(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*\)/g;
/** `[name]: address` renders as nothing, and makes a link of every `[name]`. */
const definition = /^( {0,3})\[([^\]]+)\]:\s*<?([^\s>]+)>?.*$/gm;

function isOwn(address: string): boolean {
  return /^\/(?:artifacts|data)\/[\w./-]+$/.test(address) || address.startsWith("#");
}

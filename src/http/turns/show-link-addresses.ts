/**
 * A link in an answer can be made to look like another by what a tool said. So its address stands beside its words; links to this server's own files stay as
 * they are, and so do images, of which only our own are left.
 */
export function showLinkAddresses(text: string): string {
  return text
    .replaceAll(inlineLink, (whole, words: string, address: string) => {
      if (isOwn(address)) return whole;
      return words.trim() === address ? shown(address) : `${words} (${shown(address)})`;
    })
    .replaceAll(definition, (_whole, before: string, name: string, address: string) => `${before}${name}: ${shown(address)}`);
}

const inlineLink = /(?<!!)\[((?:[^[\]\\]|\\.)*)\]\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))+)>?(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*\)/g;
/** `[name]: address` renders as nothing, and makes a link of every `[name]`. */
const definition = /^( {0,3})\[([^\]]+)\]:\s*<?([^\s>]+)>?.*$/gm;

/** Only what leads to a page is a link still. */
function shown(address: string): string {
  return /^(?:https?:\/\/|mailto:)/i.test(address) ? `<${address}>` : `\`${address.replaceAll("`", "")}\``;
}

function isOwn(address: string): boolean {
  return /^\/(?:artifacts|data)\/[\w./-]+$/.test(address) || address.startsWith("#");
}

/** A part of a text that is a credential by its form. */
export interface FoundSecret {
  readonly what: string;
  readonly start: number;
  readonly end: number;
}

/** Tokens that say by their first letters whose they are. Each is linear in the text: a fixed start and one class of characters. */
const forms: readonly { readonly what: string; readonly form: RegExp }[] = [
  { what: "a bearer token", form: /\bbearer\s{1,8}[\w.~+/=|-]{20,}/i },
  { what: "an Amazon token", form: /\bAtz[ar]\|[\w+/=-]{10,}/ },
  { what: "an AWS access key", form: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/ },
  { what: "a private key", form: /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/ },
  { what: "a GitHub token", form: /\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})/ },
  { what: "a Slack token", form: /\bxox[abeprs]-[A-Za-z0-9-]{10,}/ },
  { what: "an API key", form: /\bsk-[A-Za-z0-9_-]{20,}/ },
];

/** What each of them has in it, for a first look at the many texts that have none. */
const anyMark = /\.eyJ|bearer|basic|Atz|AKIA|ASIA|PRIVATE|gh[pousr]_|github_pat|xox|sk-/i;
const SHORTEST = 8;

/** The first credential in a text; null when there is none. */
export function findSecret(text: string): FoundSecret | null {
  if (text.length < SHORTEST || !anyMark.test(text)) return null;
  return isWholeHeader(text) ?? findJwt(text) ?? findForm(text);
}

/** The text without the credentials in it: what a backend says of a failed call can repeat what it was sent. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (let round = 0; round < 20; round += 1) {
    const found = findSecret(clean);
    if (found === null) return clean;
    clean = `${clean.slice(0, found.start)}[removed]${clean.slice(found.end)}`;
  }
  return "[removed]";
}

/** A value that is nothing but `Bearer x` or `Basic x`. Two words that are none, such as "bearer bonds", are left alone in lower case. */
function isWholeHeader(text: string): FoundSecret | null {
  if (text.length > 10_000) return null;
  const whole = { start: 0, end: text.length };
  if (/^\s*(?:Bearer|BEARER)\s+[\w.~+/=|-]+\s*$/.test(text) || /^\s*bearer\s+(?=\S*[\d._~+/=|-])[\w.~+/=|-]+\s*$/.test(text)) {
    return { what: "a bearer token", ...whole };
  }
  const basic = /^\s*Basic\s+([A-Za-z0-9+/]{4,}={0,2})\s*$/i.exec(text)?.[1];
  if (basic === undefined) return null;
  const decoded = Buffer.from(basic, "base64").toString("latin1");
  return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(decoded) ? { what: "a user name with its password", ...whole } : null;
}

/** Both the header and the payload of a JWT are objects in base64, and so begin with `eyJ`. */
function findJwt(text: string): FoundSecret | null {
  for (let dot = text.indexOf(".eyJ"); dot !== -1; dot = text.indexOf(".eyJ", dot + 1)) {
    let start = dot;
    while (start > 0 && isBase64Url(text.charCodeAt(start - 1))) start -= 1;
    if (dot - start < 8 || !text.startsWith("eyJ", start)) continue;
    let end = dot + 1;
    while (end < text.length && (isBase64Url(text.charCodeAt(end)) || text[end] === ".")) end += 1;
    return { what: "a JWT", start, end };
  }
  return null;
}

function isBase64Url(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 45 || code === 95;
}

function findForm(text: string): FoundSecret | null {
  for (const { what, form } of forms) {
    const found = form.exec(text);
    if (found !== null) return { what, start: found.index, end: found.index + found[0].length };
  }
  return null;
}

/** `always`: the name says it. `by-value`: it may be, and the value decides. `never`: it says that it is something else, or nothing. */
export type NameVerdict = "always" | "by-value" | "never";

/** What a name ends in when it holds a credential; words of the name, however they are joined. */
const endings: readonly (readonly string[])[] = [
  ["authorization"],
  ["cookie"],
  ["cookies"],
  ["bearer"],
  ["password"],
  ["passwd"],
  ["passphrase"],
  ["secret"],
  ["jwt"],
  ["credential"],
  ["credentials"],
  ["apikey"],
  ["api", "key"],
  ["secret", "key"],
  ["access", "key"],
  ["private", "key"],
  ["access", "key", "id"],
  ["account", "key"],
  ["auth", "key"],
  ["auth", "header"],
];

const starts: readonly (readonly string[])[] = [
  ["x", "amz"],
  ["x", "amzn"],
  ["amazon", "ads"],
  ["amazon", "advertising", "api"],
];

/** Before `token`: whose token is a credential, and whose is a place in a list or a piece of text. */
const credentialTokens = new Set(
  "access refresh id auth oauth oauth2 bearer session api security secret user csrf xsrf jwt personal service account admin bot device private login client identity web github gitlab slack aws lwa sas".split(
    " ",
  ),
);
const otherTokens = new Set(
  "next page pagination paging continuation continue cursor sync start starting previous prev resume list scroll delta after before marker offset position progress idempotency request stop eos bos pad end".split(
    " ",
  ),
);

/** Written as one word in lower case, where no words can be told apart. */
const compact: ReadonlySet<string> = new Set([
  ...["accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "apitoken", "securitytoken", "bearertoken", "usertoken"],
  ...["clientsecret", "apikey", "apisecret", "secretkey", "accesskey", "privatekey", "proxyauthorization", "setcookie", "pwd"],
  ...["secretaccesskey", "awssecretaccesskey", "accesskeyid", "awsaccesskeyid", "xapikey", "authheader"],
]);

/** Every name that is one has one of these in it, its words joined: a first look at the many that are none. */
const roots = /auth|cookie|bearer|pass|secret|jwt|credential|key|token|amz|amazon|pwd/i;
const isPlain = /^[\x20-\x7e]{0,200}$/;

/** Judges a parameter by its name: `apiKey`, `API-Key`, `x_api_key` and `APIKEY` are one. */
export function judgeName(name: string): NameVerdict {
  if (isPlain.test(name) && !roots.test(name.replaceAll(/[^A-Za-z0-9]/g, ""))) return "never";
  const words = toWords(name);
  const joined = words.join("");
  if (compact.has(joined) || starts.some((start) => start.every((word, index) => words[index] === word))) return "always";
  if (/^(?:xamzn?|amazonads|amazonadvertisingapi)./.test(joined)) return "always";
  if (endings.some((ending) => isAtEnd(words, ending))) return "always";
  return judgeToken(words);
}

function judgeToken(words: readonly string[]): NameVerdict {
  const [before, last] = [words.at(-2), words.at(-1)];
  if (last === "tokens") return before === undefined || credentialTokens.has(before) ? "by-value" : "never";
  if (words.length === 1 && last === "auth") return "by-value";
  if (last !== "token") return "never";
  if (before === undefined || credentialTokens.has(before)) return "always";
  return otherTokens.has(before) ? "never" : "by-value";
}

function isAtEnd(words: readonly string[], ending: readonly string[]): boolean {
  return ending.length <= words.length && ending.every((word, index) => words[words.length - ending.length + index] === word);
}

const MAX_NAME_CHARACTERS = 200;

function toWords(name: string): string[] {
  return name
    .slice(0, MAX_NAME_CHARACTERS)
    .normalize("NFKC")
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
}

import { appendToPath } from "../errors/argument-path.ts";
import { createToolError, type ToolError, receivedType } from "../errors/tool-error.ts";

export interface FoundCredential {
  readonly path: string;
  readonly receivedType: string;
  /** A whole sentence, without the value. */
  readonly issue: string;
}

/** Tested against the words of a name in lower case, joined by underscores. `next_token` and `page_token` are places in a list, not credentials. */
const credentialNames = new RegExp(
  [
    "(?:authorization|cookies?|bearer|password|passwd|pwd|passphrase|secret|jwt|credentials?|auth_?header)$",
    "(?:api|secret|access|private|account|auth)_?key$",
    "access_?key_?id$",
    "^token$",
    "(?:^|_)(?:access|refresh|id|o?auth2?|bearer|session|api|security|secret|user|[cx]srf|jwt|personal|service|account|admin|bot|device|private|login|client|identity|web|github|gitlab|slack|aws|lwa|sas)_?tokens?$",
    "^x_?amzn?_?.",
    "^amazon_?(?:ads|advertising_?api)_?.",
  ].join("|"),
);

/** Tokens that are recognized by their form. Every run is bounded: an unbounded one overflows the stack of the engine at a few megabytes. */
const tokenForms = new RegExp(
  [
    String.raw`\b(?:[Bb]earer|BEARER)\s{1,8}[\w.~+/=|-]{20,9999}`,
    String.raw`^\s{0,8}(?:Bearer|BEARER)\s{1,8}[\w.~+/=|-]{1,9999}\s{0,8}$`,
    String.raw`^\s{0,8}bearer\s{1,8}(?=\S{0,9999}[\d._~+/=|-])[\w.~+/=|-]{1,9999}\s{0,8}$`,
    String.raw`(?<![\w-])eyJ[\w-]{5,9999}\.eyJ[\w.-]{0,99999}`,
    String.raw`\bAtz[ar]\|[\w+/=-]{10,9999}`,
    String.raw`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`,
    String.raw`-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----`,
    String.raw`\b(?:gh[pousr]_[A-Za-z0-9]{30,999}|github_pat_\w{30,999})`,
    String.raw`\bxox[abeprs]-[A-Za-z0-9-]{10,999}`,
    String.raw`\bsk-[A-Za-z0-9_-]{20,9999}`,
  ].join("|"),
);
const everyTokenForm = new RegExp(tokenForms, "g");

function isCredentialText(text: string): boolean {
  return tokenForms.test(text) || isBasicHeader(text);
}

/** `Basic` with a user name and a password. "Basic Plan2" is neither. */
function isBasicHeader(text: string): boolean {
  const encoded = /^\s{0,8}basic\s{1,8}([a-z0-9+/]{4,9999}={0,2})\s{0,8}$/i.exec(text)?.[1];
  return encoded !== undefined && /^[ -~]*:[ -~]*$/.test(Buffer.from(encoded, "base64").toString("latin1"));
}

const MAX_NAME_CHARACTERS = 200;

/** Whether a parameter, header or flag holds a credential by its name: `apiKey`, `API-Key`, `x_api_key` and `APIKEY` are the same. */
export function isCredentialName(name: string): boolean {
  const words = name
    .slice(0, MAX_NAME_CHARACTERS)
    .normalize("NFKC")
    .replaceAll(/\p{Cf}/gu, "")
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
  return credentialNames.test(words.join("_"));
}

/** The text with every token replaced by `[removed]`: what a backend says about a failed call can repeat what it was sent. */
export function withoutSecrets(text: string): string {
  return isBasicHeader(text) ? "[removed]" : text.replaceAll(everyTokenForm, "[removed]");
}

/** More of them would only repeat what the first ones say. */
const MAX_FOUND = 20;

/** Paths are written only for what is found, which is rare in a large call. */
interface Node {
  readonly value: unknown;
  readonly key: string | number;
  readonly parent: Node | null;
  /** The nearest name above, across the items of lists. */
  readonly name: string | null;
}

/**
 * Arguments that are credentials by their name or by the form of their value, at any depth. A script has none to pass: the session adds them, where it
 * cannot see them. What a tool's own schema asks for makes no difference.
 */
export function findCredentials(args: unknown): FoundCredential[] {
  const found: FoundCredential[] = [];
  const seen = new WeakSet<object>();
  const nameIssues = new Map<string, string | null>(); // rows of a table have the same names over and over
  const open: Node[] = [{ value: args, key: "", parent: null, name: null }];
  for (let node = open.pop(); node !== undefined && found.length < MAX_FOUND; node = open.pop()) {
    const { value } = node;
    const issue = judge(node, nameIssues);
    if (issue !== null) {
      const path = pathOf(node);
      found.push({ path, receivedType: receivedType(value), issue: issue.replace("{path}", () => (path === "" ? "The call" : path)) });
    } else if (typeof value === "object" && value !== null && !seen.has(value)) {
      seen.add(value);
      pushChildren(node, value, open);
    }
  }
  return found;
}

function judge({ value, name }: Node, nameIssues: Map<string, string | null>): string | null {
  if (name !== null && !nameIssues.has(name)) nameIssues.set(name, judgeName(name));
  const nameIssue = name === null ? null : nameIssues.get(name)!;
  if (nameIssue === nameIsToken) return nameIssue;
  if (typeof value === "string" && isCredentialText(value)) return "{path} is a credential by its form.";
  const holdsNothing = value === null || value === undefined || value === "" || typeof value === "boolean";
  // `session_tokens: 1200` is an amount of text; a list or an object is judged by what is in it.
  const isAmount = /tokens$/i.test(name ?? "") && (typeof value !== "string" || /^\d+$/.test(value));
  return holdsNothing || isAmount ? null : nameIssue;
}

const nameIsToken = "The name of {path} is a credential.";

function judgeName(name: string): string | null {
  if (isCredentialText(name)) return nameIsToken;
  return isCredentialName(name) ? "{path} is named like a credential." : null;
}

/** In reverse, so that they are found in the order in which they were written. */
function pushChildren(parent: Node, value: object, open: Node[]): void {
  if (Array.isArray(value)) {
    for (let index = value.length - 1; index >= 0; index -= 1)
      open.push({ value: value[index] as unknown, key: index, parent, name: parent.name });
    return;
  }
  for (const [key, one] of Object.entries(value).toReversed()) open.push({ value: one, key, parent, name: key });
}

function pathOf(node: Node): string {
  const keys: (string | number)[] = [];
  for (let at = node; at.parent !== null; at = at.parent) keys.unshift(typeof at.key === "string" ? withoutSecrets(at.key) : at.key);
  return keys.reduce<string>(appendToPath, "");
}

export function toCredentialError(tool: string, found: readonly FoundCredential[]): ToolError {
  return createToolError({
    code: "CREDENTIAL_ARGUMENT",
    tool,
    summary:
      found.length === 1
        ? `The tool was not called. ${found[0]!.issue}`
        : `The tool was not called: ${found.length} arguments look like credentials.`,
    details: found.map(({ path, issue, receivedType }) => ({
      path,
      issue,
      received_type: receivedType,
      error_code: "CREDENTIAL_ARGUMENT",
    })),
    hints: [
      "Leave credentials out: the session adds those of its active identity to the call, and a script neither has nor needs them.",
      "get_session_state and set_active_identity say and choose in whose name tools are called.",
    ],
  });
}

import { appendToPath } from "../errors/argument-path.ts";
import { createToolError, type ToolError, receivedType } from "../errors/tool-error.ts";

export interface FoundCredential {
  readonly path: string;
  readonly receivedType: string;
  /** A sentence that does not contain the value. */
  readonly issue: string;
}

/** Tested against the words of a name in lower case, joined by underscores. `next_token` and `page_token` are cursors, not credentials. */
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

/** Tokens that are recognizable by their form. Every repetition is bounded, because an unbounded one overflows the regex engine's stack at a few megabytes. */
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

/** `Basic` with an encoded user name and password, unlike "Basic Plan2". */
function isBasicHeader(text: string): boolean {
  const encoded = /^\s{0,8}basic\s{1,8}([a-z0-9+/]{4,9999}={0,2})\s{0,8}$/i.exec(text)?.[1];
  const decoded = Buffer.from(encoded ?? "", "base64").toString("latin1");
  return decoded.includes(":") && /^[ -~]+$/.test(decoded);
}

const MAX_NAME_CHARACTERS = 200;

/** Whether a name of a parameter, header or flag means a credential. `apiKey`, `API-Key`, `x_api_key` and `APIKEY` are the same. */
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

/** Replaces every token in a text by `[removed]`, because the error of a backend can repeat what it was sent. */
export function withoutSecrets(text: string): string {
  return isBasicHeader(text) ? "[removed]" : text.replaceAll(everyTokenForm, "[removed]");
}

const MAX_FOUND = 20;

/** A value with its parents. Paths are built only for the few values that are reported. */
interface Node {
  readonly value: unknown;
  readonly key: string | number;
  readonly parent: Node | null;
  /** The nearest property name; items of a list have the name of the list. */
  readonly name: string | null;
}

/**
 * Finds arguments that are credentials by name or by form, at any depth, whatever the tool's schema says. Scripts must not pass credentials: the identity
 * context adds them where scripts cannot see them.
 */
export function findCredentials(args: unknown): FoundCredential[] {
  const found: FoundCredential[] = [];
  const visited = new WeakSet<object>();
  const nameIssues = new Map<string, string | null>(); // cached, because rows of a table repeat the same names
  const stack: Node[] = [{ value: args, key: "", parent: null, name: null }];
  for (let node = stack.pop(); node !== undefined && found.length < MAX_FOUND; node = stack.pop()) {
    const { value } = node;
    const issue = findIssue(node, nameIssues);
    if (issue !== null) {
      const path = toPath(node);
      found.push({ path, receivedType: receivedType(value), issue: issue.replace("{path}", () => (path === "" ? "The call" : path)) });
    } else if (typeof value === "object" && value !== null && !visited.has(value)) {
      visited.add(value);
      pushChildren(node, value, stack);
    }
  }
  return found;
}

function findIssue({ value, name }: Node, nameIssues: Map<string, string | null>): string | null {
  if (name !== null && !nameIssues.has(name)) nameIssues.set(name, findNameIssue(name));
  const nameIssue = name === null ? null : nameIssues.get(name)!;
  if (nameIssue === nameIsCredential) return nameIssue;
  if (typeof value === "string" && isCredentialText(value)) return "{path} has the form of a credential.";
  const isEmpty = value === null || value === undefined || value === "" || typeof value === "boolean";
  // `session_tokens: 1200` is an amount of text. The items of a list or an object are checked on their own.
  const isAmount = /tokens$/i.test(name ?? "") && (typeof value !== "string" || /^\d+$/.test(value));
  return isEmpty || isAmount ? null : nameIssue;
}

const nameIsCredential = "The name of {path} is a credential.";

function findNameIssue(name: string): string | null {
  if (isCredentialText(name)) return nameIsCredential;
  return isCredentialName(name) ? "{path} has the name of a credential." : null;
}

/** In reverse, because the stack is read from its end. */
function pushChildren(parent: Node, value: object, stack: Node[]): void {
  if (Array.isArray(value)) {
    for (let index = value.length - 1; index >= 0; index -= 1)
      stack.push({ value: value[index] as unknown, key: index, parent, name: parent.name });
    return;
  }
  for (const [key, child] of Object.entries(value).toReversed()) stack.push({ value: child, key, parent, name: key });
}

function toPath(node: Node): string {
  const keys: (string | number)[] = [];
  for (let current = node; current.parent !== null; current = current.parent)
    keys.unshift(typeof current.key === "string" ? withoutSecrets(current.key) : current.key);
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
      "Leave credentials out: Sluice adds those of the active identity to the call. Scripts neither have nor need them.",
      "Use get_session_state to check the context, and set_active_identity to choose the identity that tools are called with.",
    ],
  });
}

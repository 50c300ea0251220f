import { below } from "../errors/argument-path.ts";
import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { receivedType } from "../errors/received-type.ts";
import { findSecret, withoutSecrets } from "./credentials/find-secret.ts";
import { judgeName, type NameVerdict } from "./credentials/judge-name.ts";

export interface FoundCredential {
  readonly path: string;
  readonly receivedType: string;
  /** A whole sentence, without the value. */
  readonly issue: string;
}

/** More of them would only repeat what the first ones say. */
const MAX_FOUND = 20;

/** Paths are written only for what is found: of a large call, hardly ever. */
interface Node {
  readonly value: unknown;
  readonly key: string | number;
  readonly parent: Node | null;
  /** The nearest name above, over the items of lists. */
  readonly name: string | null;
}

/**
 * Arguments that are credentials by their name or by the form of their value, at any depth. A script has none to pass: the session adds them, where it
 * cannot see them. What a tool's own schema asks for makes no difference.
 */
export function findCredentials(args: unknown): FoundCredential[] {
  const found: FoundCredential[] = [];
  const seen = new WeakSet<object>();
  const judgeName = createNameJudge();
  const open: Node[] = [{ value: args, key: "", parent: null, name: null }];
  for (let node = open.pop(); node !== undefined && found.length < MAX_FOUND; node = open.pop()) {
    const { value } = node;
    const reason = judge(node, judgeName);
    if (reason !== null) {
      const path = pathOf(node);
      found.push({ path, receivedType: receivedType(value), issue: reason(path === "" ? "The call" : path) });
    } else if (typeof value === "object" && value !== null && !seen.has(value)) {
      seen.add(value);
      pushChildren(node, value, open);
    }
  }
  return found;
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
  return keys.reduce<string>(below, "");
}

export function toCredentialEnvelope(tool: string, found: readonly FoundCredential[]): Envelope {
  return createEnvelope({
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

/** What to say of it, given its path; null when it is none. */
function judge({ value, name }: Node, judgeName: (name: string) => NameVerdict | "secret"): ((path: string) => string) | null {
  const verdict = name === null ? "never" : judgeName(name);
  if (verdict === "secret") return (path) => `The name of ${path} is a credential.`;
  const secret = typeof value === "string" ? findSecret(value) : null;
  if (secret !== null) return (path) => `${path} is ${secret.what}.`;
  if (!canBeCredential(value)) return null;
  if (verdict === "always" || (verdict === "by-value" && isOpaque(value))) return (path) => `${path} is named like a credential.`;
  return null;
}

/** Rows of a table have the same names over and over. */
function createNameJudge(): (name: string) => NameVerdict | "secret" {
  const known = new Map<string, NameVerdict | "secret">();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const verdict = findSecret(name) === null ? judgeName(name) : "secret";
    known.set(name, verdict);
    return verdict;
  };
}

function canBeCredential(value: unknown): boolean {
  return value !== null && value !== undefined && value !== "" && typeof value !== "boolean";
}

/** Long, without spaces, letters and digits: nobody wrote it by hand. An address on a chain is public. */
function isOpaque(value: unknown): boolean {
  if (typeof value !== "string" || value.length < 20 || /\s/.test(value) || /^0x[0-9a-f]+$/i.test(value)) return false;
  return /\d/.test(value) && /[A-Za-z]/.test(value);
}

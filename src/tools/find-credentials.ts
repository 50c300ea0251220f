import { below } from "../errors/argument-path.ts";
import { createEnvelope, type Envelope } from "../errors/envelope.ts";
import { receivedType } from "../errors/received-type.ts";
import { findSecret } from "./credentials/find-secret.ts";
import { judgeName } from "./credentials/judge-name.ts";

export interface FoundCredential {
  readonly path: string;
  readonly receivedType: string;
  /** A whole sentence, without the value. */
  readonly issue: string;
}

/** More of them would only repeat what the first ones say. */
const MAX_FOUND = 20;

/**
 * Arguments that are credentials by their name or by the form of their value, at any depth. A script has none to pass: the session adds them, where it
 * cannot see them. What a tool's own schema asks for makes no difference.
 */
export function findCredentials(args: unknown): FoundCredential[] {
  const found: FoundCredential[] = [];
  const seen = new WeakSet<object>();
  const open: { readonly value: unknown; readonly path: string; readonly name: string | null }[] = [{ value: args, path: "", name: null }];
  for (let next = open.pop(); next !== undefined && found.length < MAX_FOUND; next = open.pop()) {
    const { value, path, name } = next;
    const issue = judge(value, path, name);
    if (issue !== null) {
      found.push({ path, receivedType: receivedType(value), issue });
      continue;
    }
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    // Pushed in reverse, so that they are found in the order in which they were written.
    for (const [key, one] of Object.entries(value).toReversed()) {
      const isItem = Array.isArray(value);
      const step = isItem ? Number(key) : findSecret(key) === null ? key : "[removed]";
      open.push({ value: one, path: below(path, step), name: isItem ? name : key });
    }
  }
  return found;
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

function judge(value: unknown, path: string, name: string | null): string | null {
  if (name !== null && findSecret(name) !== null) return `The name of ${path} is a credential.`;
  const secret = typeof value === "string" ? findSecret(value) : null;
  if (secret !== null) return `${path === "" ? "The call" : path} is ${secret.what}.`;
  const verdict = name === null || !canBeCredential(value) ? "never" : judgeName(name);
  if (verdict === "always" || (verdict === "by-value" && isOpaque(value))) return `${path} is named like a credential.`;
  return null;
}

function canBeCredential(value: unknown): boolean {
  return value !== null && value !== undefined && value !== "" && typeof value !== "boolean";
}

/** Long, without spaces, letters and digits: nobody wrote it by hand. An address on a chain is public. */
function isOpaque(value: unknown): boolean {
  if (typeof value !== "string" || value.length < 20 || /\s/.test(value) || /^0x[0-9a-f]+$/i.test(value)) return false;
  return /\d/.test(value) && /[A-Za-z]/.test(value);
}

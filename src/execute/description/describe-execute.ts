import type { EngineSetting } from "../choose-engine.ts";
import type { ExecuteLimits } from "../contract.ts";
import { claims, type ClaimTopic } from "./claims.ts";

export interface ExecuteDescriptionOptions {
  readonly limits: ExecuteLimits;
  readonly engine: EngineSetting;
  readonly hasCpython: boolean;
  /** Whether there are tools for identity, region and profile. */
  readonly hasSession: boolean;
}

/** What a model reads of `execute`. The limits are those in force, the sentences on Monty are `claims`. */
export function describeExecute(options: ExecuteDescriptionOptions): string {
  const sections = [
    purpose,
    tools(),
    failures(options),
    limitsOf(options.limits),
    engineOf(options),
    python(options),
    polling,
    ...(options.hasSession ? [session] : []),
  ];
  return sections.map((lines) => lines.join("\n")).join("\n\n");
}

const purpose = [
  "Run async Python in a sandboxed interpreter, with backend tools in scope. The whole script runs as one turn; use return, or a final expression, to produce the result. Results are JSON values.",
];

function tools(): string[] {
  return [
    "In scope: await call_tool(name: str, params: dict) -> Any. Calls any backend tool; find them with search, get_schema and tags.",
    "- Concurrent: await asyncio.gather(*[call_tool(...) for ...]). Await every call: one that is not awaited is reported and its result is lost.",
    "- Every tool result is kept whole under an alias, which the answer lists under aliases: code_interpreter can use it by that name. Do not copy data; return what you need to decide.",
    "- A result over 64 KB comes back as a preview with an alias of its own. print() is returned as prints, apart from the result.",
    "- Integers past 2**53 cannot be sent to a tool as numbers: send long identifiers as strings.",
  ];
}

function failures({ engine, hasCpython }: ExecuteDescriptionOptions): string[] {
  const syntax = engine === "monty" || !hasCpython ? ", unsupported syntax too," : ",";
  return [
    "A failing tool raises RuntimeError(<envelope_json>), where the message is the full v1 error envelope:",
    "  try:",
    "      await call_tool(name, params)",
    "  except RuntimeError as e:",
    "      env = json.loads(str(e))  # env['error_kind'], env['error_code'], env['hints'], env['retryable'], env.get('_meta', {})",
    'Failures that are no envelope are RuntimeError("<OriginalType>: <message>"). Both are caught by `except RuntimeError:`, also inside gather. To probe many candidates, give each call_tool its own try/except.',
    `Not caught: an envelope is given as it is; a blocked import becomes sandbox_runtime / SANDBOX_MODULE_BLOCKED; anything else${syntax} sandbox_runtime / SANDBOX_RUNTIME_ERROR with the line. get_envelope_contract() lists all kinds and codes.`,
  ];
}

function limitsOf({
  executionMs,
  totalMs,
  memoryBytes,
  toolCalls,
  concurrentToolCalls,
  codeBytes,
  printBytes,
  resultBytes,
}: ExecuteLimits): string[] {
  return [
    `Limits: ${seconds(executionMs)} of computing (waiting for tools does not count), ${seconds(totalMs)} in all, ${bytes(memoryBytes)} of memory, ${toolCalls} tool calls, ${concurrentToolCalls} at once, ${bytes(codeBytes)} of code, ${bytes(resultBytes)} of result, ${bytes(printBytes)} of prints.`,
  ];
}

const cpythonResults = "In its results 1.0 stays 1.0, and bytes, exceptions, types and generators raise.";

function engineOf({ engine, hasCpython }: ExecuteDescriptionOptions): string[] {
  if (engine === "cpython") return [`Interpreter: CPython, with its standard library but no network. ${cpythonResults}`];
  if (engine === "auto" && hasCpython) {
    return [
      `Interpreter: Monty, a small Python. A script that it plainly cannot take (the syntax below, a decorator, an import without try of a stdlib module that only computes, such as collections or statistics) runs in CPython instead, with the same call_tool and limits; the answer then says engine: cpython and why. ${cpythonResults} Everything else below is about Monty.`,
    ];
  }
  return ["Interpreter: Monty, a small Python. What it does not support fails."];
}

function python({ engine, hasCpython }: ExecuteDescriptionOptions): string[] {
  if (engine === "cpython") return ["No network: urllib.request, requests, httpx, socket and asyncio.sleep are blocked. Use call_tool."];
  const unsupported =
    engine === "auto" && hasCpython
      ? "Syntax that only CPython takes (nothing has run when it is found): "
      : "Unsupported syntax (nothing is run): ";
  return [
    ...textsOf("works"),
    ...textsOf("modules"),
    ...textsOf("blocked"),
    unsupported + textsOf("syntax").join(" "),
    ...textsOf("missing"),
    ...textsOf("raises"),
    "Silently different from CPython:",
    ...textsOf("wrong").map((text) => `- ${text}`),
  ];
}

function textsOf(topic: ClaimTopic): string[] {
  return claims.filter((claim) => claim.topic === topic).map(({ text }) => text);
}

const polling = [
  "Do not sleep and do not poll rapidly: for a report that takes minutes, return after one status check and let the user decide when to look again.",
];

const session = [
  "Auth, region and profile are managed by the server. Never pass tokens or other credentials in params: such arguments are refused. Set them with set_active_identity, set_region and set_active_profile; they ride every later call_tool.",
  "Call get_session_state at the start of a block: a read-only probe. Set the context again before the next call if and only if state_scope is 'request' or state_reason is not null. Within a block the scope cannot change; one probe is enough. state_reason: 'no_mcp_session' (request-scoped transport), 'token_swapped' (another token came and the previous tenant's state was cleared), 'bridge_unavailable' (treat as 'request').",
];

function seconds(milliseconds: number): string {
  return milliseconds >= 120_000 && milliseconds % 60_000 === 0 ? `${milliseconds / 60_000} min` : `${milliseconds / 1000} s`;
}

function bytes(count: number): string {
  if (count >= 1_000_000) return `${Math.round(count / 100_000) / 10} MB`;
  return count >= 1024 ? `${Math.round(count / 1024)} KB` : `${count} bytes`;
}

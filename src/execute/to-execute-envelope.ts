import { createEnvelope, parseEnvelope, type Envelope, type EnvelopeFacts } from "../errors/envelope.ts";
import { findEnvelopeInText, parseForeignEnvelope, type ForeignEnvelope } from "../errors/foreign-envelope.ts";
import type { EngineEnd, EngineName } from "./contract.ts";
import { adviseOnException } from "./exception-advice.ts";
import { adviseOn } from "./modules.ts";

const tool = "execute";
type Failure = Exclude<EngineEnd, { kind: "value" }>;

/** The envelope of a script that failed. One that a tool raised and the script did not catch is given as it is. */
export function toExecuteEnvelope(end: Failure, engine: EngineName): Envelope | ForeignEnvelope {
  switch (end.kind) {
    case "exception":
      return findEnvelope(end) ?? (blockedModule(end) === null ? ofException(end) : ofBlockedModule(end, blockedModule(end)!));
    case "syntax":
      return ofSyntax(end, engine);
    case "limit":
      return createEnvelope({ tool, ...ofLimit(end) });
    case "crashed":
      return createEnvelope({
        code: "SANDBOX_CRASHED",
        tool,
        summary: `${end.detail} Nothing else was harmed; the next script gets a new one.`,
        hints: ["Very deep nesting and unbounded recursion of coroutines do this. Make the script's data flatter, or its steps fewer."],
      });
  }
}

type ExceptionEnd = Extract<EngineEnd, { kind: "exception" }>;

/** Of a group of exceptions (`asyncio.TaskGroup`) the first that is in it: the group's own message says nothing. */
function findEnvelope({ type, message, traceback = "" }: ExceptionEnd): Envelope | ForeignEnvelope | null {
  const found = parseEnvelope(message) ?? parseForeignEnvelope(message) ?? findEnvelopeInText(message);
  return found ?? (/^(?:Base)?ExceptionGroup$/.test(type) ? findEnvelopeInText(traceback) : null);
}

function blockedModule({ type, message }: ExceptionEnd): string | null {
  if (type !== "ModuleNotFoundError" && type !== "ImportError") return null;
  return /^No module named '([^']+)'/.exec(message)?.[1] ?? null;
}

function ofBlockedModule(end: ExceptionEnd, module: string): Envelope {
  return createEnvelope({
    code: "SANDBOX_MODULE_BLOCKED",
    tool,
    summary: `The module ${module} is not available here.`,
    details: [toDetail(end, `import of ${module}`)],
    hints: [adviseOn(module), "A script that can do without may catch ImportError."],
  });
}

function ofException(end: ExceptionEnd): Envelope {
  const said = end.message === "" ? end.type : `${end.type}: ${end.message}`;
  return createEnvelope({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${said}${placeOf(end)}`,
    details: [toDetail(end, end.sourceLine?.trim() || said)],
    hints: adviseOnException(end),
  });
}

const SHOWN_LINES = 10;

function placeOf({ line, possibleLines = [] }: ExceptionEnd): string {
  if (line !== undefined) return ` (line ${line})`;
  if (possibleLines.length === 0) return "";
  const shown = possibleLines.slice(0, SHOWN_LINES);
  const rest = possibleLines.length - shown.length;
  return rest > 0 ? ` (line ${shown.join(", ")}, or one of ${rest} more)` : ` (line ${shown.slice(0, -1).join(", ")} or ${shown.at(-1)})`;
}

function ofSyntax(end: Extract<EngineEnd, { kind: "syntax" }>, engine: EngineName): Envelope {
  const place = end.line === undefined ? "" : ` (line ${end.line})`;
  return createEnvelope({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${end.unsupported ? "NotImplementedError" : "SyntaxError"}: ${end.message}${place}`,
    details: [toDetail(end, end.unsupported ? "not supported by the interpreter" : "not Python")],
    hints: [
      end.unsupported && engine === "monty"
        ? "Nothing was run. Write it with functions, dicts, if/elif and comprehensions; classes, match, del, yield, async for and async with are not supported."
        : "Nothing was run. Correct the syntax and send the whole script again.",
    ],
  });
}

function toDetail(
  end: { line?: number | undefined; column?: number | undefined; traceback?: string | undefined },
  issue: string,
): Envelope["details"][number] {
  return { path: "code", issue, received_type: "python", line: end.line, column: end.column, traceback: end.traceback };
}

function ofLimit({ limit, allowed, seen }: Extract<EngineEnd, { kind: "limit" }>): Omit<EnvelopeFacts, "tool"> {
  const details = [{ path: limit, issue: seen === undefined ? `more than ${allowed}` : `${seen} of ${allowed}`, received_type: "number" }];
  switch (limit) {
    case "executionMs":
      return {
        code: "SANDBOX_TIMEOUT",
        summary: `The script computed for ${allowed} ms, which is its limit; waiting for tools does not count.`,
        details,
        hints: [
          "Look for a loop that does not end.",
          "Work that long belongs into code_interpreter, or into a tool that filters on its side.",
        ],
      };
    case "totalMs":
      return {
        code: "SANDBOX_TIMEOUT",
        summary: `The script took ${allowed} ms in all, which is its limit; waiting for tools counts.`,
        details,
        hints: [
          "Make calls concurrent with asyncio.gather.",
          "Do not poll: return after one status check, and look again in a later call.",
        ],
      };
    case "memoryBytes":
      return {
        code: "SANDBOX_OUT_OF_MEMORY",
        summary: `The script needed more than ${allowed} bytes of memory.`,
        details,
        hints: [
          "Keep only the fields that are needed, page by page.",
          "Every tool result is kept whole under an alias: code_interpreter can use it from there.",
        ],
      };
    case "toolCalls":
      return {
        code: "SANDBOX_TOOL_CALL_LIMIT",
        summary: `The script began far more than the ${allowed} tool calls that it may make.`,
        details,
        hints: ["Ask for more items a call, or go on in another execute call."],
      };
    case "resultBytes":
      return {
        code: "PYTHON_OUTPUT_LIMIT",
        summary: `The result is over ${allowed} bytes.`,
        details,
        hints: ["Return a summary. Every tool result is kept whole under an alias: code_interpreter can use it from there."],
      };
    case "codeBytes":
      return {
        code: "CODE_TOO_LONG",
        summary: `The script is over ${allowed} bytes.`,
        details,
        hints: ["Send data through tools, not in the script."],
      };
    case "printBytes":
    case "concurrentToolCalls":
      return { code: "INTERNAL_ERROR", summary: `The limit ${limit} ended a script; it should not.`, details };
  }
}

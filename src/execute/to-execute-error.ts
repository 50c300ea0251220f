import { createToolError, parseToolError, type ToolError, type ToolErrorDetail } from "../errors/tool-error.ts";
import { findToolErrorInText, parseForeignToolError, type ForeignToolError } from "../errors/foreign-tool-error.ts";
import { adviseOnException, adviseOnModule, executeHints, limitErrors } from "../prompts/execute-hints.ts";
import type { EngineEnd, EngineName } from "./engine.ts";

const tool = "execute";
type Failure = Exclude<EngineEnd, { kind: "value" }>;

/** The tool error of a failed script. A tool error that a tool raised and the script did not catch is returned unchanged. */
export function toExecuteError(end: Failure, engine: EngineName): ToolError | ForeignToolError {
  switch (end.kind) {
    case "exception":
      return findToolError(end) ?? toBlockedModuleError(end) ?? toExceptionError(end);
    case "syntax":
      return toSyntaxError(end, engine);
    case "limit":
      return toLimitError(end);
    case "crashed":
      return createToolError({
        code: "SANDBOX_CRASHED",
        tool,
        summary: `${end.detail} Nothing else is affected: the next script gets a new process.`,
        hints: [executeHints.crash],
      });
  }
}

type ExceptionEnd = Extract<EngineEnd, { kind: "exception" }>;

/** For an exception group (`asyncio.TaskGroup`), the first tool error in it: the group's own message has no facts. */
function findToolError({ type, message, traceback = "" }: ExceptionEnd): ToolError | ForeignToolError | null {
  const found = parseToolError(message) ?? parseForeignToolError(message) ?? findToolErrorInText(message);
  return found ?? (/^(?:Base)?ExceptionGroup$/.test(type) ? findToolErrorInText(traceback) : null);
}

function toBlockedModuleError(end: ExceptionEnd): ToolError | null {
  if (end.type !== "ModuleNotFoundError" && end.type !== "ImportError") return null;
  const [, module, ownAdvice] = /^No module named '([^']+)'(?:\. (.+))?/s.exec(end.message) ?? [];
  if (module === undefined) return null;
  return createToolError({
    code: "SANDBOX_MODULE_BLOCKED",
    tool,
    summary: `The module ${module} is not available here.`,
    details: [toDetail(end, `import of ${module}`)],
    hints: [adviseOnModule(module, ownAdvice), executeHints.optionalModule],
  });
}

function toExceptionError(end: ExceptionEnd): ToolError {
  const message = end.message === "" ? end.type : `${end.type}: ${end.message}`;
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${message}${describeLine(end.line)}`,
    details: [toDetail(end, end.sourceLine?.trim() || message)],
    hints: adviseOnException(message),
  });
}

function toSyntaxError(end: Extract<EngineEnd, { kind: "syntax" }>, engine: EngineName): ToolError {
  return createToolError({
    code: "SANDBOX_RUNTIME_ERROR",
    tool,
    summary: `${end.unsupported ? "NotImplementedError" : "SyntaxError"}: ${end.message}${describeLine(end.line)}`,
    details: [toDetail(end, end.unsupported ? "not supported by the interpreter" : "invalid Python")],
    hints: [end.unsupported && engine === "monty" ? executeHints.unsupportedSyntax : executeHints.invalidSyntax],
  });
}

function describeLine(line: number | undefined): string {
  return line === undefined ? "" : ` (line ${line})`;
}

function toDetail({ line, column, traceback }: Pick<ExceptionEnd, "line" | "column" | "traceback">, issue: string): ToolErrorDetail {
  return { path: "code", issue, received_type: "python", line, column, traceback };
}

function toLimitError({ limit, allowed, seen }: Extract<EngineEnd, { kind: "limit" }>): ToolError {
  const { summary, ...facts } = limitErrors[limit];
  const details = [{ path: limit, issue: seen === undefined ? `more than ${allowed}` : `${seen} of ${allowed}`, received_type: "number" }];
  return createToolError({ ...facts, tool, summary: summary.replace("{allowed}", String(allowed)), details });
}

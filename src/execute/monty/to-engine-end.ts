import type { EngineEnd, ExecuteLimits } from "../contract.ts";
import { montyPreludeLines } from "./prelude.ts";

interface Frame {
  readonly line: number;
  readonly column: number;
  readonly functionName: string | null;
  readonly sourceLine: string;
}

export interface ReadEnd {
  readonly end: EngineEnd;
  /** Numbers of calls. */
  readonly unawaited: readonly number[];
  readonly warnings: readonly string[];
}

/** Reads a child's `done`. Null when it is not one. */
export function toEngineEnd(header: Readonly<Record<string, unknown>>, body: string, limits: ExecuteLimits): ReadEnd | null {
  const end = readEnd(header, body, limits);
  if (end === null) return null;
  return {
    end,
    unawaited: readList(header["unawaited"], isNumber),
    warnings: readList(header["warnings"], isText).map((text) => text.slice(0, 500)),
  };
}

function readEnd(header: Readonly<Record<string, unknown>>, body: string, limits: ExecuteLimits): EngineEnd | null {
  switch (header["status"]) {
    case "value":
      return { kind: "value", json: body };
    case "limit": {
      const limit = header["limit"];
      if (limit !== "memoryBytes" && limit !== "resultBytes" && limit !== "totalMs") return null;
      return { kind: "limit", limit, allowed: limits[limit], ...(isNumber(header["seen"]) ? { seen: header["seen"] } : {}) };
    }
    case "syntax": {
      if (!isText(header["message"])) return null;
      const place = isNumber(header["line"]) ? toPlace(header["line"], header["column"]) : {};
      return { kind: "syntax", unsupported: header["unsupported"] === true, message: header["message"], ...place };
    }
    case "exception":
      return isText(header["exception"]) ? toException(header["exception"], body, header) : null;
    default:
      return null;
  }
}

function toException(type: string, message: string, header: Readonly<Record<string, unknown>>): EngineEnd {
  const frames = readList(header["frames"], isFrame).filter(({ line }) => line > montyPreludeLines);
  const last = frames.at(-1);
  if (last === undefined) return { kind: "exception", type, message };
  const omitted = isNumber(header["omittedFrames"]) ? header["omittedFrames"] : 0;
  return {
    kind: "exception",
    type,
    message,
    ...toPlace(last.line, last.column),
    sourceLine: last.sourceLine,
    traceback: toTraceback(frames, omitted, message === "" ? type : `${type}: ${message}`),
  };
}

function toTraceback(frames: readonly Frame[], omitted: number, last: string): string {
  const lines = frames.flatMap(({ line, functionName, sourceLine }, index) => [
    ...(omitted > 0 && index === 20 ? [`  [${omitted} more]`] : []),
    `  line ${line - montyPreludeLines}, in ${functionName ?? "<module>"}`,
    ...(sourceLine === "" ? [] : [`    ${sourceLine.trim()}`]),
  ]);
  return ["Traceback (most recent call last):", ...lines, last].join("\n");
}

/** In the script's own lines: the prelude stands before them. */
function toPlace(line: number, column: unknown): { line?: number; column?: number } {
  if (line <= montyPreludeLines) return {};
  return { line: line - montyPreludeLines, ...(isNumber(column) ? { column } : {}) };
}

function readList<Item>(value: unknown, is: (item: unknown) => item is Item): Item[] {
  return Array.isArray(value) ? value.slice(0, 1_000).filter(is) : [];
}

function isFrame(value: unknown): value is Frame {
  if (typeof value !== "object" || value === null) return false;
  const { line, column, functionName, sourceLine } = value as Record<string, unknown>;
  return isNumber(line) && isNumber(column) && (functionName === null || isText(functionName)) && isText(sourceLine);
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

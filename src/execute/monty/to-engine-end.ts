import { z } from "zod";
import type { EngineEnd, ExecuteLimits } from "../engine.ts";
import { montyPreludeLines } from "./prelude.ts";

const frameSchema = z.object({ line: z.int(), column: z.int(), functionName: z.string().nullable(), sourceLine: z.string() });

const endSchema = z.discriminatedUnion("status", [
  z.object({ status: z.literal("value") }),
  z.object({ status: z.literal("limit"), limit: z.enum(["memoryBytes", "resultBytes", "totalMs"]), seen: z.int().optional() }),
  z.object({
    status: z.literal("syntax"),
    unsupported: z.boolean(),
    message: z.string(),
    line: z.int().optional(),
    column: z.int().optional(),
  }),
  z.object({
    status: z.literal("exception"),
    exception: z.string(),
    frames: z.array(frameSchema).max(1_000),
    omittedFrames: z.int().default(0),
  }),
]);

const restSchema = z.object({
  /** Numbers of calls. */
  unawaited: z.array(z.int()).max(1_000).default([]),
  warnings: z.array(z.string().max(1_000)).max(1_000).default([]),
});

export interface ReadEnd extends z.infer<typeof restSchema> {
  readonly end: EngineEnd;
}

/** Reads a child's `done`. Null when it is not one. */
export function toEngineEnd(header: unknown, body: string, limits: ExecuteLimits): ReadEnd | null {
  const end = endSchema.safeParse(header);
  const rest = restSchema.safeParse(header);
  return end.success && rest.success ? { end: readEnd(end.data, body, limits), ...rest.data } : null;
}

function readEnd(done: z.infer<typeof endSchema>, body: string, limits: ExecuteLimits): EngineEnd {
  switch (done.status) {
    case "value":
      return { kind: "value", json: body };
    case "limit":
      return { kind: "limit", limit: done.limit, allowed: limits[done.limit], ...(done.seen === undefined ? {} : { seen: done.seen }) };
    case "syntax":
      return { kind: "syntax", unsupported: done.unsupported, message: done.message, ...toPlace(done) };
    case "exception": {
      const frames = done.frames.filter(({ line }) => line > montyPreludeLines);
      const last = frames.at(-1);
      if (last === undefined) return { kind: "exception", type: done.exception, message: body };
      const traceback = toTraceback(frames, done.omittedFrames, body === "" ? done.exception : `${done.exception}: ${body}`);
      return { kind: "exception", type: done.exception, message: body, ...toPlace(last), sourceLine: last.sourceLine, traceback };
    }
  }
}

function toTraceback(frames: readonly z.infer<typeof frameSchema>[], omitted: number, last: string): string {
  const lines = frames.flatMap(({ line, functionName, sourceLine }, index) => [
    ...(omitted > 0 && index === 20 ? [`  [${omitted} more]`] : []),
    `  line ${line - montyPreludeLines}, in ${functionName ?? "<module>"}`,
    ...(sourceLine === "" ? [] : [`    ${sourceLine.trim()}`]),
  ]);
  return ["Traceback (most recent call last):", ...lines, last].join("\n");
}

/** In the script's own lines: the prelude stands before them. */
function toPlace({ line = 0, column }: { line?: number | undefined; column?: number | undefined }): { line?: number; column?: number } {
  if (line <= montyPreludeLines) return {};
  return { line: line - montyPreludeLines, ...(column === undefined ? {} : { column }) };
}

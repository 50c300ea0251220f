import type { z } from "zod";
import { describeSchemaIssues } from "../../errors/describe-schema-issues.ts";
import { HttpFailure } from "../http-failure.ts";

/** A JSON body within its cap, held against its schema. Another content type is refused: a form of somebody else's page can send those without asking. */
export async function readJsonBody(request: Request, { schema, maxBytes }: { schema: z.ZodType; maxBytes: number }): Promise<unknown> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json")
    throw new HttpFailure({
      status: 415,
      code: "CONTENT_TYPE_WRONG",
      message: `The body must be application/json, and is ${type === undefined ? "of no type" : JSON.stringify(type)}.`,
    });
  return check(schema, parse(await readText(request, maxBytes)), "body");
}

/** `check` with what is wrong in the order in which it stands there. */
export function check(schema: z.ZodType, value: unknown, where: "body" | "query" | "path"): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = describeSchemaIssues({ schema, value, issues: parsed.error.issues, mayShow: () => true });
  throw new HttpFailure({
    status: 400,
    code: "REQUEST_INVALID",
    message: `The ${where} is not as it must be: ${problems.map(({ path, problem }) => `${path || "the whole"}: ${problem}`).join(" ")}`,
    details: { problems },
  });
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const said = Number(request.headers.get("content-length") ?? 0);
  if (said > maxBytes) throw tooLarge(maxBytes);
  if (request.body === null) return "";
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of request.body as unknown as AsyncIterable<Uint8Array>) {
    size += piece.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFailure({ status: 400, code: "REQUEST_INVALID", message: "The body is no JSON." });
  }
}

export function tooLarge(maxBytes: number): HttpFailure {
  return new HttpFailure({
    status: 413,
    code: "BODY_TOO_LARGE",
    message: `The body is longer than the ${maxBytes} bytes that are allowed here.`,
  });
}

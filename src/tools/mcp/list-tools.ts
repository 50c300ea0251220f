import { z } from "zod";
import type { BackendTool } from "../backend-tool.ts";

/** A tool as its server lists it. The source adds `server` and `call`. */
export type ListedTool = Omit<BackendTool, "server" | "call">;

/** Reads all pages. Skips and logs tools that violate the protocol, or whose description no model and no validator can read. */
export async function listTools(
  fetchPage: (cursor: string | undefined) => Promise<unknown>,
  onWarning: (text: string) => void,
): Promise<ListedTool[]> {
  const tools = new Map<string, ListedTool>();
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const page = pageSchema.parse(await fetchPage(cursor));
    for (const raw of page.tools) {
      const tooLarge = whyTooLarge(raw);
      const tool = tooLarge === null ? toListedTool(raw) : null;
      if (tooLarge !== null) onWarning(`skipped the tool ${nameOf(raw)}: its description and schemas ${tooLarge}`);
      else if (tool === null) onWarning(`skipped a tool that violates the protocol: ${JSON.stringify(raw).slice(0, 200)}`);
      else if (tools.has(tool.name)) onWarning(`the tool ${tool.name} is listed twice; the first is used`);
      else tools.set(tool.name, tool);
    }
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined) break;
    if (cursors.has(cursor) || tools.size >= MAX_TOOLS) {
      const repeated = `the list of tools repeats the cursor ${cursor.slice(0, 100)}`;
      onWarning(cursors.has(cursor) ? repeated : `only the first ${MAX_TOOLS} tools are used`);
      break;
    }
    cursors.add(cursor);
  }
  return [...tools.values()];
}

const MAX_TOOLS = 10_000;
/** Models read the schemas of all tools in every step, and recursive code handles them. */
const MAX_TOOL_CHARACTERS = 256 * 1024;
const MAX_TOOL_DEPTH = 100;

/** Why a listed tool is not used, as the end of a sentence; null if it is small enough. */
function whyTooLarge(raw: unknown): string | null {
  let level: unknown[] = [raw];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_TOOL_DEPTH) return `are nested more than ${MAX_TOOL_DEPTH} levels deep`;
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
  const characters = JSON.stringify(raw).length;
  return characters <= MAX_TOOL_CHARACTERS ? null : `have ${characters} characters; the limit is ${MAX_TOOL_CHARACTERS}`;
}

function nameOf(raw: unknown): string {
  const { name } = (raw ?? {}) as { name?: unknown };
  return typeof name === "string" ? name.slice(0, 100) : "without a name";
}

const pageSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });
const record = z.record(z.string(), z.unknown()).optional();
const text = z.string().optional().catch(undefined);
const hint = z.boolean().optional().catch(undefined);
const annotationsSchema = z.object({ title: text, readOnlyHint: hint, destructiveHint: hint, idempotentHint: hint, openWorldHint: hint });
const toolSchema = z.object({
  name: z.string().min(1),
  title: text,
  description: text,
  inputSchema: record,
  outputSchema: record.catch(undefined),
  annotations: annotationsSchema.optional().catch(undefined),
  _meta: record.catch(undefined),
});

function toListedTool(raw: unknown): ListedTool | null {
  const parsed = toolSchema.safeParse(raw);
  if (!parsed.success) return null;
  const { name, description = "", inputSchema = { type: "object" }, outputSchema, _meta } = parsed.data;
  const { title, ...annotations } = parsed.data.annotations ?? {};
  return { name, title: parsed.data.title ?? title, description, inputSchema, outputSchema, annotations, tags: readTags(_meta) };
}

/** Servers put tags in `_meta.tags` or in the keys of FastMCP. */
function readTags(meta: Record<string, unknown> | undefined): string[] {
  const places = [meta, meta?.["fastmcp"], meta?.["_fastmcp"]];
  const found = places.flatMap((place) => tagsSchema.safeParse(place).data?.tags ?? []);
  return [...new Set(found.filter((tag) => typeof tag === "string" && tag !== ""))] as string[];
}

const tagsSchema = z.looseObject({ tags: z.array(z.unknown()) });

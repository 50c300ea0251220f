import { z } from "zod";
import type { BackendTool } from "../backend-tool.ts";

/** A tool as its server describes it; `server` and `call` are added by the source. */
export type ToolDescription = Omit<BackendTool, "server" | "call">;

export type FetchPage = (cursor: string | undefined) => Promise<unknown>;

/** All pages. One tool that is not as the protocol says is left out, with a word to the log, and does not cost the others. */
export async function listTools(fetchPage: FetchPage, onOdd: (text: string) => void): Promise<ToolDescription[]> {
  const tools = new Map<string, ToolDescription>();
  const cursors = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = pageSchema.parse(await fetchPage(cursor));
    for (const raw of page.tools) {
      const tool = toDescription(raw);
      if (tool === null) onOdd(`a tool was left out, because it is not as the protocol says: ${JSON.stringify(raw).slice(0, 200)}`);
      else if (tools.has(tool.name)) onOdd(`the tool ${tool.name} is listed twice; the first is used`);
      else tools.set(tool.name, tool);
    }
    cursor = page.nextCursor ?? undefined;
    if (cursor !== undefined && (cursors.has(cursor) || tools.size >= MAX_TOOLS)) {
      const circle = `the list of tools goes in circles at cursor ${cursor.slice(0, 100)}`;
      onOdd(cursors.has(cursor) ? circle : `only the first ${MAX_TOOLS} tools are used`);
      break;
    }
    if (cursor !== undefined) cursors.add(cursor);
  } while (cursor !== undefined);
  return [...tools.values()];
}

const MAX_TOOLS = 10_000;

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

function toDescription(raw: unknown): ToolDescription | null {
  const parsed = toolSchema.safeParse(raw);
  if (!parsed.success) return null;
  const { name, title, description = "", inputSchema = { type: "object" }, outputSchema, annotations: annotated, _meta } = parsed.data;
  const { title: otherTitle, ...annotations } = annotated ?? {};
  return { name, title: title ?? otherTitle, description, inputSchema, outputSchema, annotations, tags: readTags(_meta) };
}

/** From the places where servers put them: `_meta.tags`, and FastMCP's own. */
function readTags(meta: Record<string, unknown> | undefined): string[] {
  const places = [meta, meta?.["fastmcp"], meta?.["_fastmcp"]];
  const found = places.flatMap((place) => tagsSchema.safeParse(place).data?.tags ?? []);
  return [...new Set(found.filter((tag) => typeof tag === "string" && tag !== ""))] as string[];
}

const tagsSchema = z.looseObject({ tags: z.array(z.unknown()) });

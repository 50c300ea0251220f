import { z } from "zod";
import { toErrorResult, type Tool, type ToolCallResult } from "../tools/tool.ts";
import type { ConversationData, DataAnswer, DataCallOptions } from "./conversation-data.ts";
import { listDataCallSchema, readDataCallSchema, storeDataCallSchema } from "./data-call-schemas.ts";

/** A tool over the data of a conversation. */
export type DataTool = Tool<DataContext>;

export interface DataContext extends DataCallOptions {
  readonly data: ConversationData;
}

const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

export const dataTools: readonly DataTool[] = [
  {
    name: "store_data",
    title: "Store data",
    description:
      "Keep inline JSON (data) or CSV text (csv) under a name, so that code_interpreter, render_chart and read_data can use it by that alias.",
    inputSchema: z.toJSONSchema(storeDataCallSchema, { io: "input" }),
    annotations: { ...reads, readOnlyHint: false, idempotentHint: false },
    run: async (input, { data }) => toResult(await data.storeData(input)),
  },
  {
    name: "list_data",
    title: "List data",
    description:
      "Every alias there is, given files included: source, format, bytes, rows, columns. With aliases: their full schemas (types, null shares, ranges).",
    inputSchema: z.toJSONSchema(listDataCallSchema, { io: "input" }),
    annotations: reads,
    run: async (input, { data, signal }) => toResult(await data.listData(input, { signal })),
  },
  {
    name: "read_data",
    title: "Read data",
    description:
      "A page of rows of any alias, with filter, search and sort over the whole table; says total, matched and nextOffset. To compute, use code_interpreter.",
    inputSchema: z.toJSONSchema(readDataCallSchema, { io: "input" }),
    annotations: reads,
    run: async (input, { data, signal }) => toResult(await data.readData(input, { signal })),
  },
];

function toResult(answer: DataAnswer): ToolCallResult {
  return answer.ok ? { status: "ok", text: answer.json, error: null } : toErrorResult(answer.toolError);
}

import { z } from "zod";
import { dataToolDescriptions } from "../prompts/data-tools.ts";
import { readOnlyAnnotations, toErrorResult, type Tool, type ToolCallResult } from "../tools/tool.ts";
import type { ConversationData, DataAnswer, DataCallOptions } from "./conversation-data.ts";
import { listDataCallSchema } from "./list-data.ts";
import { readDataCallSchema } from "./read-data-page.ts";
import { storeDataCallSchema } from "./store-data.ts";

/** A tool that works on the data of a conversation. */
export type DataTool = Tool<DataContext>;

interface DataContext extends DataCallOptions {
  readonly data: ConversationData;
}

export const dataTools: readonly DataTool[] = [
  {
    name: "store_data",
    title: "Store data",
    description: dataToolDescriptions.store_data,
    inputSchema: z.toJSONSchema(storeDataCallSchema, { io: "input" }),
    annotations: { ...readOnlyAnnotations, readOnlyHint: false, idempotentHint: false },
    run: async (input, { data, signal }) => toResult(await data.storeData(input, { signal })),
  },
  {
    name: "list_data",
    title: "List data",
    description: dataToolDescriptions.list_data,
    inputSchema: z.toJSONSchema(listDataCallSchema, { io: "input" }),
    annotations: readOnlyAnnotations,
    run: async (input, { data, signal }) => toResult(await data.listData(input, { signal })),
  },
  {
    name: "read_data",
    title: "Read data",
    description: dataToolDescriptions.read_data,
    inputSchema: z.toJSONSchema(readDataCallSchema, { io: "input" }),
    annotations: readOnlyAnnotations,
    run: async (input, { data, signal }) => toResult(await data.readData(input, { signal })),
  },
];

function toResult(answer: DataAnswer): ToolCallResult {
  return answer.ok ? { status: "ok", text: answer.json, error: null } : toErrorResult(answer.toolError);
}

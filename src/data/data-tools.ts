import type { z } from "zod";
import type { ConversationData, DataAnswer, DataCallOptions } from "./contract.ts";
import { listDataCallSchema, readDataCallSchema, storeDataCallSchema } from "./data-call-schemas.ts";

/** A tool over the data of a conversation, as any way in can offer it. */
export interface DataTool {
  readonly name: "store_data" | "list_data" | "read_data";
  readonly title: string;
  readonly description: string;
  readonly inputSchema: z.ZodType;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: false;
    readonly idempotentHint: boolean;
    readonly openWorldHint: false;
  };
  /** Checks its input itself; rejects on abort only. */
  call(data: ConversationData, input: unknown, options?: DataCallOptions): Promise<DataAnswer>;
}

const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

export const dataTools: readonly DataTool[] = [
  {
    name: "store_data",
    title: "Store data",
    description:
      "Keep inline JSON (data) or CSV text (csv) under a name, so that code_interpreter, render_chart and read_data can use it by that alias.",
    inputSchema: storeDataCallSchema,
    annotations: { ...reads, readOnlyHint: false, idempotentHint: false },
    call: (data, input) => data.storeData(input),
  },
  {
    name: "list_data",
    title: "List data",
    description:
      "Every alias there is, given files included: source, format, bytes, rows, columns. With aliases: their full schemas (types, null shares, ranges).",
    inputSchema: listDataCallSchema,
    annotations: reads,
    call: (data, input, options) => data.listData(input, options),
  },
  {
    name: "read_data",
    title: "Read data",
    description:
      "A page of rows of any alias, with filter, search and sort over the whole table; says total, matched and nextOffset. To compute, use code_interpreter.",
    inputSchema: readDataCallSchema,
    annotations: reads,
    call: (data, input, options) => data.readData(input, options),
  },
];

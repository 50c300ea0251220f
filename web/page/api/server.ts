import { z } from "zod";
import { chartRowsSchema, chartSpecSchema } from "../../../src/protocol/chart-spec.ts";
import type { Figure } from "../../../src/protocol/figure.ts";
import { readFigure } from "../../../src/protocol/read-figure.ts";
import { cellRunSchema, type CellRun } from "../../../src/protocol/http-cells.ts";
import {
  conversationListSchema,
  conversationSchema,
  type ConversationDocument,
  type ConversationList,
} from "../../../src/protocol/http-conversations.ts";
import {
  operationsSchema,
  selfTestSchema,
  serverInfoSchema,
  type Operations,
  type SelfTest,
  type ServerInfo,
} from "../../../src/protocol/http-operations.ts";
import {
  aliasListSchema,
  aliasSchema,
  tableRowsSchema,
  tableSchemaSchema,
  type Alias,
  type GivenTable,
  type TableRows,
  type TableSchema,
} from "../../../src/protocol/http-tables.ts";
import { approvalTakenSchema, turnDocumentSchema, turnStopSchema, type TurnDocument } from "../../../src/protocol/http-turns.ts";
import { request, send } from "./request.ts";

const chartSchema = z.object({ spec: chartSpecSchema, data: chartRowsSchema });
const conversation = (id: string): string => `/api/conversations/${encodeURIComponent(id)}`;
const turn = (id: string): string => `/api/turns/${encodeURIComponent(id)}`;

export interface TableFilter {
  readonly column: string;
  readonly op: string;
  readonly value?: string | number | undefined;
}

export interface RowsQuery {
  readonly offset: number;
  readonly limit: number;
  readonly search: string;
  readonly filter: readonly TableFilter[];
  readonly sort: readonly { readonly column: string; readonly descending: boolean }[];
}

/** All routes that the page uses. */
export const server = {
  info: (): Promise<ServerInfo> => request("/api/info", serverInfoSchema),
  conversations: ({ q, before, signal }: { q: string; before?: string; signal?: AbortSignal }): Promise<ConversationList> => {
    const query = new URLSearchParams({ limit: "40", ...(q === "" ? {} : { q }), ...(before ? { before } : {}) });
    return request(`/api/conversations?${query}`, conversationListSchema, { signal });
  },
  conversation: (id: string, signal?: AbortSignal): Promise<ConversationDocument> =>
    request(conversation(id), conversationSchema, { signal }),
  remove: (id: string): Promise<Response> => send(conversation(id), { method: "DELETE" }),
  aliases: (id: string): Promise<{ aliases: Alias[] }> => request(`${conversation(id)}/aliases`, aliasListSchema),
  upload: (id: string, file: File): Promise<Alias> => {
    const query = new URLSearchParams({ name: file.name });
    return request(`${conversation(id)}/files?${query}`, aliasSchema, { method: "POST", body: file });
  },
  schema: (id: string, alias: string, signal?: AbortSignal): Promise<TableSchema> =>
    request(`${conversation(id)}/aliases/${encodeURIComponent(alias)}/schema`, tableSchemaSchema, { signal }),
  rows: (id: string, alias: string, { offset, limit, search, filter, sort }: RowsQuery, signal?: AbortSignal): Promise<TableRows> => {
    const query = new URLSearchParams({ offset: String(offset), limit: String(limit) });
    if (search !== "") query.set("search", search);
    if (filter.length > 0) query.set("filter", JSON.stringify(filter));
    if (sort.length > 0) query.set("sort", JSON.stringify(sort));
    return request(`${conversation(id)}/aliases/${encodeURIComponent(alias)}/rows?${query}`, tableRowsSchema, { signal });
  },
  tableUrl: (id: string, alias: string, ending: string): string => `${conversation(id)}/tables/${encodeURIComponent(alias)}.${ending}`,
  chart: (hash: string): Promise<z.infer<typeof chartSchema>> => request(`/artifacts/${hash}.json`, chartSchema),
  figure: async (hash: string): Promise<Figure> => readFigure(await request(`/artifacts/${hash}.json`, z.unknown())),
  writeParquet: async (table: GivenTable): Promise<Blob> => (await send("/api/tables.parquet", { method: "POST", json: table })).blob(),
  turn: (id: string, signal?: AbortSignal): Promise<TurnDocument> => request(turn(id), turnDocumentSchema, { signal }),
  stop: (id: string): Promise<unknown> => request(`${turn(id)}/stop`, turnStopSchema, { method: "POST" }),
  approve: (turnId: string, approvalId: string, approved: boolean): Promise<unknown> =>
    request(`${turn(turnId)}/approvals/${encodeURIComponent(approvalId)}`, approvalTakenSchema, { method: "POST", json: { approved } }),
  runCell: (turnId: string, cell: number, code: string, signal: AbortSignal): Promise<CellRun> =>
    request("/api/cells", cellRunSchema, { method: "POST", json: { turnId, cell, code }, signal }),
  operations: (signal?: AbortSignal): Promise<Operations> => request("/api/ops", operationsSchema, { signal }),
  selfTest: (): Promise<SelfTest> => request("/api/ops/self-test", selfTestSchema, { method: "POST" }),
} as const;

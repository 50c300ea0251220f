import { Readable } from "node:stream";
import { z } from "zod";
import type { DataAnswer } from "../../../data/conversation-data.ts";
import { openAliasDownload } from "../../../data/open-table-download.ts";
import type { EvidenceItem, EvidenceStore } from "../../../evidence/evidence-store.ts";
import { tableFileEndings } from "../../../protocol/data-files.ts";
import { httpIdSchema } from "../../../protocol/http-error.ts";
import { readerOptionsSchema, type ReaderOptions } from "../../../protocol/reader.ts";
import { aliasListSchema, aliasSchema, tableRowsSchema, tableSchemaSchema } from "../../../protocol/http-tables.ts";
import { describeAliases, toUploadExample, type LiveConversation } from "../conversations.ts";
import { HttpFailure, toHttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { conversationNotFound } from "./conversation-routes.ts";
import { checkSchema, json, jsonText, type Route, type RouteRequest, takesSandbox, tooLarge } from "./route.ts";
import { toDownload } from "./to-download.ts";

type AliasParts = Pick<ServerParts, "history" | "conversations" | "configured" | "uploads">;

/** The data of a conversation: upload files, browse aliases as tables, download them. */
export function aliasRoutes(parts: AliasParts): Route[] {
  return [
    {
      method: "post",
      path: "/api/conversations/{conversationId}/files",
      operationId: "uploadFile",
      beginsWork: {},
      summary: `Upload a data file (${tableFileEndings.join(", ")}) to a conversation. It becomes an alias.`,
      query: z.object({ name: z.string().min(1).max(255), ...readerOptionsSchema.shape }),
      body: "bytes",
      responses: { 201: { description: "The new alias.", schema: aliasSchema } },
      handle: (request) => uploadFile(parts, request),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases",
      operationId: "listAliases",
      summary: "List the aliases of a conversation.",
      responses: { 200: { description: "The aliases, oldest first.", schema: aliasListSchema } },
      handle: (request) => useConversation(parts, request, async (live) => json({ aliases: describeAliases(live, parts.history) })),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/schema",
      operationId: "getAliasSchema",
      summary: "Get the columns of an alias with types, shares of nulls and ranges.",
      responses: { 200: { description: "The columns.", schema: tableSchemaSchema } },
      handle: (request) => readSchema(parts, request),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/rows",
      operationId: "readAliasRows",
      summary: "Get one page of the rows of an alias, searched, filtered and sorted.",
      query: z.object({
        offset: z.coerce.number().int().nonnegative().optional(),
        limit: z.coerce.number().int().min(1).max(1000).optional(),
        search: z.string().max(500).optional(),
        filter: jsonArray.optional(),
        sort: jsonArray.optional(),
        columns: jsonArray.optional(),
      }),
      responses: { 200: { description: "One page of rows.", schema: tableRowsSchema } },
      handle: (request) => readRows(parts, request),
    },
    tableRoute(parts, "csv"),
    tableRoute(parts, "parquet"),
    {
      method: "get",
      path: "/api/conversations/{conversationId}/tables/{alias}.json",
      operationId: "downloadAliasJson",
      summary: "Download an alias that is JSON, byte for byte as it was received.",
      responses: { 200: { description: "The JSON file.", contentType: "application/json" } },
      handle: (request) => downloadJson(parts, request),
    },
  ];
}

function tableRoute(parts: AliasParts, as: "csv" | "parquet"): Route {
  return {
    method: "get",
    path: `/api/conversations/{conversationId}/tables/{alias}.${as}`,
    operationId: `downloadAlias${as === "csv" ? "Csv" : "Parquet"}`,
    beginsWork: takesSandbox,
    summary: `Download an alias as ${as === "csv" ? "CSV. Text that a spreadsheet would run as a formula is prefixed with '" : "Parquet"}.`,
    responses: { 200: { description: "The table.", contentType: as === "csv" ? "text/csv" : "application/vnd.apache.parquet" } },
    handle: (request) => downloadTable(parts, request, as),
  };
}

/** Throws CONVERSATION_NOT_FOUND. */
async function useConversation(
  { history, conversations }: AliasParts,
  { principal: { tenant }, parameters }: RouteRequest,
  work: (live: LiveConversation) => Promise<Response>,
): Promise<Response> {
  const id = parameters["conversationId"]!;
  if (history.conversations.get(tenant, id) === null) throw conversationNotFound(id);
  return await conversations.use({ tenant, id }, work);
}

/** An array, as JSON text in the query. */
const jsonArray = z.string().transform((text, context): unknown[] => {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
  } catch {
    // reported below
  }
  context.addIssue({ code: "custom", message: "must be a JSON array" });
  return z.NEVER;
});

async function uploadFile(parts: AliasParts, request: RouteRequest): Promise<Response> {
  const { uploadBytes } = parts.configured.configuration.server;
  const id = checkSchema(httpIdSchema, request.parameters["conversationId"], "path") as string;
  if (Number(request.request.headers.get("content-length") ?? 0) > uploadBytes) throw tooLarge(uploadBytes);
  return await parts.conversations.use({ tenant: request.principal.tenant, id }, async (live) => {
    const signal = AbortSignal.any([request.signal, live.removalSignal]);
    const alias = await storeUpload(parts, live, { ...request, signal });
    const schema = await live.data.schema(alias, { signal }); // reads the file: rows and columns are known from now on
    const described = describeAliases(live, parts.history).find((candidate) => candidate.alias === alias);
    return json({ ...described, problem: schema.ok ? undefined : schema.toolError.summary }, { status: 201 });
  });
}

/** Stores the body as a file and adds its alias to the conversation, which is created if needed. Throws UPLOAD_REMOVED. */
async function storeUpload(
  { history, uploads, conversations }: AliasParts,
  live: LiveConversation,
  { request, query, signal }: RouteRequest,
): Promise<string> {
  const { tenant, id } = live;
  const reader = toReaderOptions(query);
  const name = String(query["name"]);
  // Before the body is touched: until then, the server keeps the connection open, so that the client gets the refusal.
  using arrival = live.storage.expect(`The file ${JSON.stringify(name)}`, Number(request.headers.get("content-length") ?? 0));
  const content = request.body === null ? Readable.from([]) : Readable.fromWeb(request.body);
  const upload = await uploads.put({ tenant, fileName: name, content: arrival.count(content), reader, signal });
  const { sha256, bytes, format, fileName } = upload;
  const at = new Date().toISOString();
  history.conversations.ensure({ tenant, id, title: fileName, at });
  const readerExample = toUploadExample(id, fileName);
  const { alias } = live.data.addUpload({ ...upload, readerExample });
  const record = JSON.stringify({ tenant, sha256, bytes, fileName, format, reader });
  const isStored = history.uploads.add({ tenant, conversationId: id, at }, { alias, record, sha256, bytes }, () =>
    uploads.blobsOf(tenant).has(sha256),
  );
  if (!isStored) {
    // Another conversation had a file with the same bytes, and it was removed between `put` and `add`.
    conversations.invalidate({ tenant, id });
    throw new HttpFailure({ code: "UPLOAD_REMOVED", message: "The file was removed during the upload.", retryAfterSeconds: 1 });
  }
  history.conversations.touch(tenant, id, at);
  live.savedAliases.add(alias);
  return alias;
}

/** The options for reading a file, of the query. Undefined if there are none. */
function toReaderOptions({ encoding, delimiter, decimal }: RouteRequest["query"]): ReaderOptions | undefined {
  const given = Object.entries({ encoding, delimiter, decimal }).filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : readerOptionsSchema.parse(Object.fromEntries(given));
}

function readSchema(parts: AliasParts, request: RouteRequest): Promise<Response> {
  const { parameters, signal } = request;
  return useConversation(parts, request, async ({ data }) => toResponse(await data.schema(parameters["alias"]!, { signal })));
}

function readRows(parts: AliasParts, request: RouteRequest): Promise<Response> {
  const { parameters, query, signal } = request;
  return useConversation(parts, request, async ({ data }) =>
    toResponse(await data.page({ alias: parameters["alias"]!, ...query }, { signal })),
  );
}

/** Returns the JSON text unchanged, because parsing it would lose digits of integers beyond 2^53. */
function toResponse(answer: DataAnswer): Response {
  if (answer.ok) return jsonText(answer.json);
  throw toHttpFailure(answer.toolError);
}

function downloadTable(parts: AliasParts, request: RouteRequest, as: "csv" | "parquet"): Promise<Response> {
  const { openCellSession } = parts.configured.runtime;
  return useConversation(parts, request, async ({ evidence }) => {
    const item = findItem(evidence, request);
    const download = await openAliasDownload({ item, as, openCellSession, signal: request.signal });
    return await toDownload(request.request, download, { isAttachment: true });
  });
}

function downloadJson(parts: AliasParts, request: RouteRequest): Promise<Response> {
  return useConversation(parts, request, async ({ evidence }) => {
    const item = findItem(evidence, request);
    const { alias, format, bytes } = item;
    if (format !== "json") throw new HttpFailure({ code: "NO_TABLE", message: `${alias} is not JSON.` });
    const stream = (): Readable => Readable.from([item.read()]);
    const download = { fileName: `${alias}.json`, contentType: "application/json", bytes, stream };
    return await toDownload(request.request, download, { isAttachment: true });
  });
}

function findItem(evidence: EvidenceStore, { parameters }: RouteRequest): EvidenceItem {
  const alias = parameters["alias"]!;
  const item = evidence.get(alias);
  if (item === null) throw new HttpFailure({ code: "ALIAS_UNKNOWN", message: `The conversation has no alias ${alias}.` });
  return item;
}

import { Readable } from "node:stream";
import { z } from "zod";
import type { DataAnswer } from "../../../data/conversation-data.ts";
import { openAliasDownload } from "../../../data/open-table-download.ts";
import { tableFileEndings } from "../../../protocol/data-files.ts";
import { aliasListSchema, aliasSchema, tableRowsSchema, tableSchemaSchema } from "../../../protocol/http-tables.ts";
import { httpIdSchema } from "../../../protocol/http-error.ts";
import { type LiveConversation, toAliases } from "../conversations.ts";
import type { EvidenceItem, EvidenceStore } from "../../../evidence/evidence-store.ts";
import { HttpFailure, toHttpFailure } from "../http-failure.ts";
import type { ServerParts } from "../open-parts.ts";
import { noConversation } from "./conversation-routes.ts";
import { json, jsonText, type Route, type RouteRequest, check, takesSandbox, tooLarge } from "./route.ts";
import { toDownload } from "./to-download.ts";

type AliasParts = Pick<ServerParts, "history" | "conversations" | "configured" | "uploads">;

/** Data of a conversation: files that are given to it, and every alias as a table to look through and to take away. */
export function aliasRoutes(parts: AliasParts): Route[] {
  return [
    {
      method: "post",
      path: "/api/conversations/{conversationId}/files",
      operationId: "uploadFile",
      beginsWork: {},
      summary: `Give a data file (${tableFileEndings.join(", ")}) to a conversation, as an alias of it.`,
      query: z.object({ name: z.string().min(1).max(255) }),
      body: "bytes",
      answers: { 201: { description: "The alias.", schema: aliasSchema } },
      handle: async (request) => await upload(parts, request),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases",
      operationId: "listAliases",
      summary: "Everything that a conversation holds by name.",
      answers: { 200: { description: "Aliases, oldest first.", schema: aliasListSchema } },
      handle: (request) => within(parts, request, async (live) => json({ aliases: toAliases(live, parts.history) })),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/schema",
      operationId: "getAliasSchema",
      summary: "Columns of an alias with types, shares of nulls and ranges.",
      answers: { 200: { description: "The columns.", schema: tableSchemaSchema } },
      handle: (request) =>
        within(parts, request, async ({ data }) => toAnswer(await data.schema(request.parameters["alias"]!, { signal: request.signal }))),
    },
    {
      method: "get",
      path: "/api/conversations/{conversationId}/aliases/{alias}/rows",
      operationId: "readAliasRows",
      summary: "One page of the rows of an alias, searched, filtered and sorted.",
      query: z.object({
        offset: z.coerce.number().int().nonnegative().optional(),
        limit: z.coerce.number().int().min(1).max(1000).optional(),
        search: z.string().max(500).optional(),
        filter: jsonList.optional(),
        sort: jsonList.optional(),
        columns: jsonList.optional(),
      }),
      answers: { 200: { description: "The page.", schema: tableRowsSchema } },
      handle: (request) =>
        within(parts, request, async ({ data }) => {
          const input = { alias: request.parameters["alias"]!, ...request.query };
          return toAnswer(await data.page(input, { signal: request.signal }));
        }),
    },
    tableRoute(parts, "csv"),
    tableRoute(parts, "parquet"),
    {
      method: "get",
      path: "/api/conversations/{conversationId}/tables/{alias}.json",
      operationId: "downloadAliasJson",
      summary: "An alias that is JSON, byte for byte as it came.",
      answers: { 200: { description: "The bytes.", contentType: "application/json" } },
      handle: (request) =>
        within(parts, request, async ({ evidence }) => {
          const item = findItem(evidence, request);
          const { alias, format, bytes } = item;
          if (format !== "json")
            throw new HttpFailure({ code: "NO_TABLE", message: `${alias} cannot be had in this form: it has no rows.` });
          const stream = (): Readable => Readable.from([item.read()]);
          const download = { fileName: `${alias}.json`, contentType: "application/json", bytes, stream };
          return await toDownload(request.request, download, { isAttachment: true });
        }),
    },
  ];
}

function tableRoute(parts: AliasParts, as: "csv" | "parquet"): Route {
  return {
    method: "get",
    path: `/api/conversations/{conversationId}/tables/{alias}.${as}`,
    operationId: `downloadAlias${as === "csv" ? "Csv" : "Parquet"}`,
    beginsWork: takesSandbox,
    summary: `An alias as ${as === "csv" ? "CSV, with formulas made harmless" : "Parquet"}.`,
    answers: { 200: { description: "The table.", contentType: as === "csv" ? "text/csv" : "application/vnd.apache.parquet" } },
    handle: (request) =>
      within(parts, request, async ({ evidence }) => {
        const item = findItem(evidence, request);
        const { openCellSession } = parts.configured.runtime;
        const download = await openAliasDownload({ item, as, openCellSession, signal: request.signal });
        return await toDownload(request.request, download, { isAttachment: true });
      }),
  };
}

/** A conversation that is there. */
async function within(
  { history, conversations }: AliasParts,
  { principal: { tenant }, parameters }: RouteRequest,
  work: (live: LiveConversation) => Promise<Response>,
): Promise<Response> {
  const id = parameters["conversationId"]!;
  if (history.conversations.get(tenant, id) === null) noConversation(id);
  return await conversations.use({ tenant, id }, work);
}

/** A list as JSON text in the query. */
const jsonList = z.string().transform((text, context): unknown[] => {
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value)) return value;
  } catch {
    // told below
  }
  context.addIssue({ code: "custom", message: "must be a list, as JSON" });
  return z.NEVER;
});

async function upload(parts: AliasParts, { request, parameters, query, principal: { tenant }, signal }: RouteRequest): Promise<Response> {
  const { history, uploads, conversations } = parts;
  const { uploadBytes } = parts.configured.configuration.server;
  const id = check(httpIdSchema, parameters["conversationId"], "path") as string;
  const fileName = String(query["name"]);
  if (Number(request.headers.get("content-length") ?? 0) > uploadBytes) throw tooLarge(uploadBytes);
  const content = request.body === null ? Readable.from([]) : Readable.fromWeb(request.body);
  return await conversations.use({ tenant, id }, async (live) => {
    const wanted = AbortSignal.any([signal, live.removed]);
    const kept = await uploads.put({ tenant, fileName, content, signal: wanted });
    const at = new Date().toISOString();
    history.conversations.ensure({ tenant, id, title: kept.fileName, at });
    const { alias } = live.data.addUpload(kept);
    const { sha256, bytes, format } = kept;
    const record = JSON.stringify({ tenant, sha256, bytes, fileName: kept.fileName, format });
    const isKept = history.uploads.add({ tenant, conversationId: id, at }, { alias, record, sha256, bytes }, () =>
      uploads.blobsOf(tenant).has(sha256),
    );
    if (!isKept) {
      // The same bytes were another's as well, and were removed with it in the moment in which they came again.
      conversations.refresh({ tenant, id });
      const message = "The file was removed while it was taken.";
      throw new HttpFailure({ code: "UPLOAD_REMOVED", message, retryAfterSeconds: 1 });
    }
    history.conversations.touch(tenant, id, at);
    live.kept.add(alias);
    const read = await live.data.schema(alias, { signal: wanted }); // rows and columns are known from now on; so is what is wrong with it
    const taken = toAliases(live, history).find((one) => one.alias === alias);
    return json({ ...taken, ...(read.ok ? {} : { problem: read.toolError.summary }) }, { status: 201 });
  });
}

/** What the data module says, as it says it: digits past 2^53 are exact in its text. */
function toAnswer(answer: DataAnswer): Response {
  if (answer.ok) return jsonText(answer.json);
  throw toHttpFailure(answer.toolError);
}

function findItem(evidence: EvidenceStore, { parameters }: RouteRequest): EvidenceItem {
  const alias = parameters["alias"]!;
  const item = evidence.get(alias);
  if (item === null) throw new HttpFailure({ code: "ALIAS_UNKNOWN", message: `The conversation has nothing of the name ${alias}.` });
  return item;
}
